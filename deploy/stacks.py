"""Deploy and remove linkwatch on AWS, over boto3: python deploy/stacks.py deploy|remove|status [options]

Region and credentials are found the ordinary boto3 way (AWS_PROFILE, AWS_REGION, ...). There are two stacks:
NAME-foundation (table, queues, topics) and NAME (functions and all that starts them). See deploy/README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.exceptions import BotoCoreError, ClientError, WaiterError
from package_lambda import CannotPack, package

HERE = Path(__file__).resolve().parent
# What the application takes from the foundation unless it is set.
HANDED_OVER = (
    "TableName",
    "QueueUrl",
    "QueueArn",
    "DeadLetterQueueUrl",
    "DeadLetterQueueArn",
    "MailEventsQueueArn",
    "MailEventsTopicArn",
    "AlertTopicArn",
)
WAIT = {"Delay": 5, "MaxAttempts": 360}


class Refused(Exception):
    """Said to the person as it is."""


class Deployment:
    """The two stacks of one name in one account and region.

    Args: session: whose region and credentials are used.
    """

    def __init__(self, name: str, session: Any) -> None:
        self.name = name
        self.foundation = f"{name}-foundation"
        self._stacks = session.client("cloudformation")
        self._store = session.client("s3")
        self._account = session.client("sts").get_caller_identity()["Account"]
        self._region = session.region_name

    @property
    def bucket(self) -> str:
        """Where the zips are, one for each content ever deployed."""
        return f"{self.name}-code-{self._account}-{self._region}"

    def deploy(self, settings: Mapping[str, str], *, code: str | None, extra: Sequence[Path] = ()) -> None:
        """Make or update both stacks.

        Args:
            settings: parameters of the templates, by name; what is not given stays as it is, or gets its default.
            code: a key in the bucket to go back to; None packs what is here.
            extra: further files to pack.
        """
        templates = {name: _parameters(name) for name in ("foundation", "application")}
        _check_settings(settings, templates)
        key = code if code is not None else self._upload(extra)
        self._bring(self.foundation, "foundation", _those_of(templates["foundation"], settings))
        outputs = self.outputs(self.foundation)
        handed_over = {name: outputs[name] for name in HANDED_OVER}
        if self._exists(self.name):
            del handed_over["TableName"]  # it may have been set to a restored one: only a person changes it
        given = handed_over | _those_of(templates["application"], settings)
        given["AlertTopicArn"] = outputs["AlertTopicArn"]  # checked by the foundation, made there if none is given
        self._bring(self.name, "application", {**given, "CodeBucket": self.bucket, "CodeKey": key})

    def remove(self) -> None:
        """Delete the application, the foundation and the zips. The table stays."""
        table = self.outputs(self.foundation).get("TableName") if self._exists(self.foundation) else None
        for stack in (self.name, self.foundation):
            if self._exists(stack):
                say(f"deleting stack {stack}")
                self._stacks.delete_stack(StackName=stack)
                self._stacks.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig=WAIT)
        self._delete_bucket()
        if table is not None:
            say(f"the table {table} is kept, with its bill; deploy/README.md says how to take it up again or delete it")

    def outputs(self, stack: str) -> dict[str, str]:
        """What a stack tells."""
        described = self._stacks.describe_stacks(StackName=stack)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", ())}

    def status(self) -> None:
        for stack in (self.foundation, self.name):
            if not self._exists(stack):
                raise Refused(f"there is no stack {stack} in {self._region}.")
            described = self._stacks.describe_stacks(StackName=stack)["Stacks"][0]
            say(f"{stack}: {described['StackStatus']}")
            for name, value in sorted(self.outputs(stack).items()):
                say(f"  {name} = {value}")

    def settings_of_a_home(self) -> str:
        """Lines for the linkwatch.toml of a home that works on these stacks."""
        outputs = self.outputs(self.foundation)
        return (
            f'profile = "aws"\ntable = "{outputs["TableName"]}"\nqueue_url = "{outputs["QueueUrl"]}"\n'
            f'dead_letter_queue_url = "{outputs["DeadLetterQueueUrl"]}"'
        )

    def _upload(self, extra: Sequence[Path]) -> str:
        self._make_bucket()
        with tempfile.TemporaryDirectory() as folder:
            packed = Path(folder) / "linkwatch-lambda.zip"
            package(packed, extra=tuple(extra))
            content = packed.read_bytes()
        key = f"linkwatch-lambda-{hashlib.sha256(content).hexdigest()[:16]}.zip"
        say(f"uploading {len(content):,} bytes as {key}")
        self._store.put_object(Bucket=self.bucket, Key=key, Body=content)
        return key

    def _make_bucket(self) -> None:
        try:
            self._store.head_bucket(Bucket=self.bucket)
            return
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
                raise
        say(f"making bucket {self.bucket}")
        where = {} if self._region == "us-east-1" else {"LocationConstraint": self._region}
        self._store.create_bucket(
            Bucket=self.bucket, **({"CreateBucketConfiguration": where} if where else {})
        )  # private and encrypted unless somebody says otherwise
        self._store.put_public_access_block(
            Bucket=self.bucket,
            PublicAccessBlockConfiguration={
                "BlockPublicAcls": True,
                "IgnorePublicAcls": True,
                "BlockPublicPolicy": True,
                "RestrictPublicBuckets": True,
            },
        )

    def _delete_bucket(self) -> None:
        try:
            for page in self._store.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
                for entry in page.get("Contents", ()):
                    self._store.delete_object(Bucket=self.bucket, Key=entry["Key"])
            self._store.delete_bucket(Bucket=self.bucket)
            say(f"deleted bucket {self.bucket}")
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise

    def _bring(self, stack: str, template: str, settings: Mapping[str, str]) -> None:
        """Make a stack or update it; CloudFormation takes back a change that fails."""
        exists = self._exists(stack)
        kept = set(self._current(stack)) - set(settings) if exists else set()
        known = set(_parameters(template))
        what = {
            "StackName": stack,
            "TemplateBody": (HERE / f"{template}.yaml").read_text(encoding="utf-8"),
            "Capabilities": ["CAPABILITY_IAM"],
            "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in sorted(settings.items())]
            + [{"ParameterKey": name, "UsePreviousValue": True} for name in sorted(kept & known)],
        }
        if not exists:
            say(f"making stack {stack}")
            self._stacks.create_stack(**what, EnableTerminationProtection=False)
            self._wait(stack, "stack_create_complete")
            return
        try:
            self._stacks.update_stack(**what)
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
            say(f"stack {stack} is as it should be")
            return
        say(f"updating stack {stack}")
        self._wait(stack, "stack_update_complete")

    def _wait(self, stack: str, waiter: str) -> None:
        try:
            self._stacks.get_waiter(waiter).wait(StackName=stack, WaiterConfig=WAIT)
        except WaiterError as error:
            raise Refused(f"stack {stack} was taken back: {self._first_failure(stack)}") from error

    def _first_failure(self, stack: str) -> str:
        events = self._stacks.describe_stack_events(StackName=stack)["StackEvents"]
        failed = [event for event in events if event["ResourceStatus"].endswith("FAILED")]
        if not failed:
            return "no resource says why."
        first = failed[-1]  # newest first
        return f"{first['LogicalResourceId']}: {first.get('ResourceStatusReason', 'no reason is given')}"

    def _current(self, stack: str) -> dict[str, str]:
        described = self._stacks.describe_stacks(StackName=stack)["Stacks"][0]
        return {each["ParameterKey"]: each.get("ParameterValue", "") for each in described.get("Parameters", ())}

    def _exists(self, stack: str) -> bool:
        try:
            found = self._stacks.describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            return False
        return any(each["StackStatus"] != "DELETE_COMPLETE" for each in found)


def say(text: str) -> None:
    print(text, file=sys.stderr)


def _parameters(template: str) -> dict[str, Any]:
    """A template's parameters, by name."""

    class Loader(yaml.SafeLoader):
        """Takes CloudFormation's short forms for nothing: only parameters are looked at."""

    Loader.add_multi_constructor("!", lambda loader, name, node: None)
    read: dict[str, Any] = yaml.load((HERE / f"{template}.yaml").read_text(encoding="utf-8"), Loader)["Parameters"]
    return read


def _those_of(parameters: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name in parameters}


def _check_settings(settings: Mapping[str, str], templates: Mapping[str, Mapping[str, Any]]) -> None:
    known = {name for parameters in templates.values() for name in parameters} - {"CodeBucket", "CodeKey"}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise Refused(f"there is no parameter {', '.join(unknown)}; there are {', '.join(sorted(known))}.")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


@contextmanager
def _told_to_the_person() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise Refused(str(error)) from error


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="stacks.py", description="Deploy and remove linkwatch on AWS.")
    parser.add_argument("--name", default="linkwatch", help="the application's stack; the other is NAME-foundation")
    commands = parser.add_subparsers(dest="command", required=True)
    deploy = commands.add_parser("deploy", help="make or update both stacks")
    deploy.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help="a parameter")
    deploy.add_argument("--code", metavar="KEY", help="go back to a zip that was deployed before, by its key")
    deploy.add_argument("--with", dest="extra", type=Path, action="append", default=[], help="one more file to pack")
    commands.add_parser("remove", help="delete both stacks; the table stays")
    commands.add_parser("status", help="what is there, and the outputs")
    given = parser.parse_args(arguments)
    try:
        with _told_to_the_person():
            deployment = Deployment(given.name, boto3.session.Session())
            if given.command == "deploy":
                deployment.deploy(dict(given.set), code=given.code, extra=given.extra)
                say("deployed. For the linkwatch.toml of a home that works on it:")
                print(deployment.settings_of_a_home())
            elif given.command == "remove":
                deployment.remove()
            else:
                deployment.status()
    except (Refused, CannotPack) as problem:
        print(f"stacks.py: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
