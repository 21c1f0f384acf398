"""Deploy and remove linkwatch on AWS, over boto3: python deploy/stacks.py deploy|remove|status [options]

Region and credentials are found the ordinary boto3 way (AWS_PROFILE, AWS_REGION, ...). There are two stacks:
NAME-foundation (table, queues, topics) and NAME (functions and all that starts them). See deploy/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from cloudformation import Stack
from code_bucket import CodeBucket
from package_lambda import CannotPack
from parameters import (
    check_complete,
    check_functions_take,
    check_name,
    check_sender,
    check_settings,
    parameters_of,
)
from refusals import NotFine, Refused, say
from sharing import check_identity, check_namespace, check_nobody_sends_as, made_identity, neighbours

from linkwatch_pipeline.adapters.aws_client import SETTINGS_ERRORS, in_words_of_settings, is_of_settings
from linkwatch_pipeline.adapters.store.dynamodb import is_amazons
from linkwatch_pipeline.settings.entries import KINDS

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
# An AWS that is silent is told of within half a minute.
QUICK = Config(connect_timeout=5, read_timeout=8, retries={"mode": "standard", "total_max_attempts": 3})
# The numbers of a home would hide the silence of the functions (docs/decisions/0040).
NOT_OF_A_HOME = ("metrics_namespace",)


class Deployment:
    """The two stacks of one name in one account and region.

    Args: session: whose region and credentials are used.
    Raises: Refused for a name that cannot be used.
    """

    def __init__(self, name: str, session: Any) -> None:
        self.name = name
        self._clouds, patient = session.client("cloudformation", config=QUICK), session.client("cloudformation")
        self._foundation = Stack(self._clouds, f"{name}-foundation", "foundation", patient=patient)
        self._application = Stack(self._clouds, name, "application", patient=patient)
        self._functions = session.client("lambda", config=QUICK)
        self._tables = session.client("dynamodb", config=QUICK)
        self._mails = session.client("sesv2", config=QUICK)
        account = session.client("sts", config=QUICK).get_caller_identity()["Account"]
        self._region = session.region_name
        # As patient as boto3 is: a slow line may take long for the zip.
        self._code = CodeBucket(
            session.client("s3"), f"{name}-code-{account}-{self._region}", region=session.region_name
        )
        check_name(name, self._code.name)

    def deploy(self, settings: Mapping[str, str], *, code: str | None, extra: Sequence[Path] = ()) -> None:
        """Make or update both stacks. What can be known to be wrong is refused before anything is made.

        Args:
            settings: parameters of the templates, by name; what is not given stays as it is, or gets its default.
            code: a key in the bucket to go back to; None packs what is here.
            extra: further files to pack.
        """
        templates = {name: parameters_of(name) for name in ("foundation", "application")}
        of_foundation, of_application = (_those_of(each, settings) for each in templates.values())
        self._check(settings, templates)
        key = self._code.deployed_before(code) if code is not None else self._code.upload(extra)
        self._foundation.bring(of_foundation)
        outputs = self._foundation.outputs()
        handed_over = {name: outputs[name] for name in HANDED_OVER}
        if self._application.status() is not None:
            del handed_over["TableName"]  # it may have been set to a restored one: only a person changes it
        given = handed_over | of_application
        given["AlertTopicArn"] = outputs["AlertTopicArn"]  # checked by the foundation, made there if none is given
        self._application.bring({**given, "CodeBucket": self._code.name, "CodeKey": key})

    def remove(self) -> None:
        """Delete the application, the foundation and the zips. The table stays.

        Raises: NotFine if there is nothing; Refused for stacks of somebody else, or if others need what would go.
        """
        for stack in (self._application, self._foundation):
            stack.check_ours()
        if (made := made_identity(self._application_there())) is not None:
            check_nobody_sends_as(made, neighbours(self._clouds, self.name))
        table = self._foundation.outputs().get("TableName")
        there = [stack for stack in (self._application, self._foundation) if stack.status() is not None]
        for stack in there:
            stack.delete()
        if not self._code.delete() and not there:
            raise NotFine(f"there is no stack {self.name} or {self._foundation.name} in {self._region}.")
        if table is not None:
            say(f"the table {table} is kept, with its bill; deploy/README.md says how to take it up again or delete it")

    def status(self) -> None:
        for stack in (self._foundation, self._application):
            status = stack.status()
            if status is None:
                raise NotFine(f"there is no stack {stack.name} in {self._region}.")
            say(f"{stack.name}: {status}")
            for name, value in sorted(stack.outputs().items()):
                say(f"  {name} = {value}")

    def settings_of_a_home(self) -> str:
        """Lines for the linkwatch.toml of a home that works on these stacks: what the functions themselves go by."""
        variables: dict[str, str] = {}
        for output, function in self._application.outputs().items():
            if output.endswith("FunctionName"):
                known = self._functions.get_function_configuration(FunctionName=function)
                variables.update(known["Environment"]["Variables"])
        chosen = {name.removeprefix("LINKWATCH_").lower(): value for name, value in variables.items()}
        if not is_amazons(self._tables):  # an emulator's, on purpose
            chosen["allow_endpoint"] = "true"
        values = {key: KINDS[key].read(chosen[key]) for key in KINDS if chosen.get(key) and key not in NOT_OF_A_HOME}
        return "\n".join(f"{key} = {_as_toml(value)}" for key, value in values.items())

    def _check(self, settings: Mapping[str, str], templates: Mapping[str, Any]) -> None:
        check_settings(settings, templates)
        if "WeeklySchedule" in settings and "WeeklyRepeatSchedule" not in settings:
            raise Refused(
                "WeeklySchedule goes with WeeklyRepeatSchedule, which would begin the week at its own time: set both."
            )
        self._foundation.check_usable()
        self._application.check_usable()
        of_foundation = {*settings, *self._foundation.values()}
        of_application = {*settings, *self._application.values(), *HANDED_OVER, "CodeBucket", "CodeKey"}
        check_complete(templates, {"foundation": of_foundation, "application": of_application})
        values = self._values_of_application(settings, templates["application"])
        if {"MailFrom", "MailIdentity"} & set(settings):  # what SES takes already stands in the way of no pause
            check_sender(values)
        check_functions_take(values)
        self._check_shares_nothing(settings, values)
        if "TableName" in settings:
            self._check_table(settings["TableName"])

    def _check_shares_nothing(self, settings: Mapping[str, str], values: Mapping[str, str]) -> None:
        """Not of what stands and is not set: it stands in the way of no pause."""
        there = self._application_there()
        others = neighbours(self._clouds, self.name)
        if not there or {"MailIdentity", "MakeMailIdentity"} & set(settings):
            check_identity(self._mails, there, values)
        if (made := made_identity(there)) not in (None, values["MailIdentity"]):
            check_nobody_sends_as(str(made), others)
        if not there or "MetricsNamespace" in settings:
            check_namespace(values["MetricsNamespace"], others)

    def _application_there(self) -> dict[str, str]:
        """The values of the application; none if it is not there, or only as what a failed attempt left."""
        return self._application.values() if self._application.stands() else {}

    def _values_of_application(self, settings: Mapping[str, str], parameters: Mapping[str, Any]) -> dict[str, str]:
        """As they would be after this deployment, as far as it is known before."""
        defaults = {name: str(each["Default"]) for name, each in parameters.items() if "Default" in each}
        return defaults | self._foundation.outputs() | self._application.values() | dict(settings)

    def _check_table(self, name: str) -> None:
        try:
            table = self._tables.describe_table(TableName=name)["Table"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            raise Refused(
                f"there is no table {name} in {self._region}, and no deployment makes one of that name. Leave "
                "TableName out, or set it to the table of an earlier foundation or a restored one."
            ) from error
        keys = [key["AttributeName"] for key in table["KeySchema"]]
        if keys != ["pk", "sk"]:
            raise Refused(f"table {name} has the keys {', '.join(keys)} and not pk, sk: it is none of linkwatch's.")
        if table["TableStatus"] not in ("ACTIVE", "UPDATING"):
            raise NotFine(f"table {name} is {table['TableStatus']}. Wait until it is ACTIVE, then repeat.")


def _those_of(parameters: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name in parameters}


def _as_toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_as_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _each_once(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The settings by name. Raises Refused for one that is given twice: either may be the one that was meant."""
    twice = sorted(name for name, times in Counter(name for name, _ in given).items() if times > 1)
    if twice:
        raise Refused(f"{', '.join(twice)} is given more than once. Give each parameter once.")
    return dict(given)


@contextmanager
def _told_to_the_person() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise Refused(in_words_of_settings("AWS", error) if is_of_settings(error) else str(error)) from error
    except SETTINGS_ERRORS as error:
        raise Refused(in_words_of_settings("AWS", error)) from error


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
        settings = _each_once(given.set) if given.command == "deploy" else {}
        if given.command == "deploy" and given.code is not None and given.extra:
            raise Refused("--with packs a file into a new zip, and --code takes an old one as it is. Give one of them.")
        with _told_to_the_person():
            deployment = Deployment(given.name, boto3.session.Session())
            if given.command == "deploy":
                deployment.deploy(settings, code=given.code, extra=given.extra)
                say("deployed. For the linkwatch.toml of a home that works on it:")
                print(deployment.settings_of_a_home())
            elif given.command == "remove":
                deployment.remove()
            else:
                deployment.status()
    except (Refused, NotFine, CannotPack, OSError) as problem:
        say(f"stacks.py: {problem}")
        return 1 if isinstance(problem, NotFine) else 2
    except KeyboardInterrupt:
        say("stacks.py: interrupted. What CloudFormation began goes on by itself; 'stacks.py status' tells how.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
