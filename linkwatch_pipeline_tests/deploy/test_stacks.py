"""One command deploys both stacks on the emulator, again changes nothing, and one removes them; the table stays."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from shutil import copy
from types import ModuleType
from typing import ClassVar

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from linkwatch_pipeline.settings import Settings, load_settings
from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack
from linkwatch_pipeline_tests.cloud.patient_clients import patient_clients
from linkwatch_pipeline_tests.deploy.templates import DEPLOY, ROOT

Command = Callable[..., tuple[int, str, str]]
REQUIRED = {"Contact": "links@example.com", "MailFrom": "links@example.com", "MailIdentity": "example.com"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """One of its own: what it holds can be told whole."""
    with started_ministack(tmp_path_factory.mktemp("stacks")) as started:
        yield started


def stacks(cloud: Cloud, *arguments: str, name: str = "lw", folder: Path = DEPLOY) -> tuple[int, str, str]:
    """Run the command; its exit code, what it printed, what it said. Args: folder: that it and its templates are in."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | dict(cloud.env)
    command = [sys.executable, str(folder / "stacks.py"), "--name", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env, cwd=Path(os.sep))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def settings(**given: str) -> list[str]:
    return [part for name, value in given.items() for part in ("--set", f"{name}={value}")]


def keys(partition: str, sort: str) -> dict[str, list[dict[str, str]]]:
    """Of a new table."""
    names = (partition, sort)
    return {
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
        ],
    }


def test_what_is_deployed_is_there_stays_and_goes(cloud: Cloud) -> None:
    code, printed, said = stacks(cloud, "deploy", *settings(**REQUIRED, ScheduleState="DISABLED"))
    assert code == 0, said
    assert set(tomllib.loads(printed)) >= {"contact", "table", "queue_url", "dead_letter_queue_url"}
    functions = {f["FunctionName"]: f for f in cloud.client("lambda").list_functions()["Functions"]}
    assert sorted(functions) == ["lw-check", "lw-dispatch", "lw-health", "lw-mail-events", "lw-notify"]
    assert functions["lw-check"]["Timeout"] == 30
    schedules = cloud.client("scheduler").list_schedules()["Schedules"]
    assert sorted(s["State"] for s in schedules) == ["DISABLED"] * 3 + ["ENABLED"] * 2
    table = tomllib.loads(printed)["table"]
    cloud.client("dynamodb").put_item(TableName=table, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})

    code, _, said = stacks(cloud, "deploy")
    assert code == 0, said
    assert said.count("is as it should be") == 2  # what was set before is still set

    restored = {"TableName": "restored", "BillingMode": "PAY_PER_REQUEST"}
    cloud.client("dynamodb").create_table(**restored, **keys("pk", "sk"))
    code, printed, said = stacks(cloud, "deploy", *settings(ScheduleState="ENABLED", TableName="restored"))
    assert code == 0, said
    assert tomllib.loads(printed)["table"] == "restored"
    assert "updating stack lw\n" in said
    assert stacks(cloud, "deploy")[2].count("is as it should be") == 2
    variables = cloud.client("lambda").get_function_configuration(FunctionName="lw-check")["Environment"]["Variables"]
    assert variables["LINKWATCH_TABLE"] == "restored"  # a restored table is not given up by the next deployment
    states = {s["State"] for s in cloud.client("scheduler").list_schedules()["Schedules"]}
    assert states == {"ENABLED"}

    code, _, said = stacks(cloud, "remove")
    assert code == 0, said
    assert f"the table {table} is kept" in said
    assert cloud.client("lambda").list_functions()["Functions"] == []
    assert cloud.client("sqs").list_queues().get("QueueUrls", []) == []
    assert cloud.client("s3").list_buckets()["Buckets"] == []
    assert cloud.client("dynamodb").scan(TableName=table)["Count"] == 1


def test_a_home_of_the_printed_lines_does_as_the_functions_do(cloud: Cloud, tmp_path: Path) -> None:
    given = {"MailFrom": "links@docs.example.com", "AllowedHosts": "docs.example.com,example.org", "Confirm": "3"}
    given |= {"Breaker": "false", "Canaries": "one,two", "MaximumConcurrency": "7", "MetricsNamespace": "theirs"}
    given |= {"Allowances": '{"docs.example.com": {"visits": 2, "agreed_with": "Ada \\"docs\\", Köln"}}'}
    code, printed, said = stacks(cloud, "deploy", *settings(**REQUIRED | given), name="home")
    assert code == 0, said
    (tmp_path / "linkwatch.toml").write_text(printed, encoding="utf-8")
    home = asdict(load_settings(tmp_path / "linkwatch.toml", env={}))
    assert (home["mail"], home["mail_from"]) == ("ses", "links@docs.example.com")
    assert (home["ses_configuration_set"], home["confirm"]) == ("home-mails", 3)
    assert home["allowances"]["docs.example.com"] == {"visits": 2, "agreed_with": 'Ada "docs", Köln'}
    functions = cloud.client("lambda")
    for function in ("check", "dispatch", "health", "mail-events", "notify"):
        known = functions.get_function_configuration(FunctionName=f"home-{function}")["Environment"]["Variables"]
        used = asdict(load_settings(Path("none"), env=known))
        for key in (name.removeprefix("LINKWATCH_").lower() for name in known):
            assert home[key] == used[key] or key == "metrics_namespace", key
    assert home["metrics_namespace"] == Settings().metrics_namespace
    assert home["allow_endpoint"]  # of an emulator; at Amazon's own endpoints the lines say nothing of it
    assert stacks(cloud, "remove", name="home")[0] == 0


class TestFailures:
    """CloudFormation's own course, as the emulator has it: a resource cannot be made, and the stack goes back."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A copy of the folder, whose templates may be spoiled."""
        (tmp_path / "linkwatch_pipeline").symlink_to(ROOT / "linkwatch_pipeline")
        (tmp_path / "deploy").mkdir()
        for file in (*DEPLOY.glob("*.py"), *DEPLOY.glob("*.yaml")):
            copy(file, tmp_path / "deploy")
        return tmp_path / "deploy"

    @staticmethod
    def spoil(folder: Path, template: str, resource: str) -> None:
        """Give a template, as it is released, one resource that cannot be made."""
        text = (DEPLOY / f"{template}.yaml").read_text(encoding="utf-8")
        cannot_be = (
            f"{resource}:\n    Type: AWS::Lambda::Url\n    Properties: {{AuthType: NONE, TargetFunctionArn: none}}\n"
        )
        spoiled = text.replace("\nResources:\n", f"\nResources:\n  {cannot_be}")
        (folder / f"{template}.yaml").write_text(spoiled, encoding="utf-8")

    def test_a_first_attempt_that_failed_says_why_and_stands_in_nobody_s_way(self, cloud: Cloud, folder: Path) -> None:
        self.spoil(folder, "application", "Wrong")
        code, printed, said = stacks(cloud, "deploy", *settings(**REQUIRED, Confirm="2"), name="first", folder=folder)
        assert (code, printed) == (1, ""), said
        assert "stacks.py: stack first is ROLLBACK_COMPLETE: Wrong: Lambda function not found" in said
        code, printed, said = stacks(cloud, "deploy", *settings(Breaker="false"), name="first")
        assert code == 0, said
        assert "deleted and made anew" in said
        assert tomllib.loads(printed)["confirm"] == 2  # what was set at the first attempt is still set
        assert stacks(cloud, "remove", name="first")[0] == 0

    def test_a_later_update_that_fails_names_its_own_fault_and_not_an_earlier_one(
        self, cloud: Cloud, folder: Path
    ) -> None:
        assert stacks(cloud, "deploy", *settings(**REQUIRED), name="later", folder=folder)[0] == 0
        for fault in ("Former", "Latter"):
            self.spoil(folder, "application", fault)
            code, _, said = stacks(cloud, "deploy", name="later", folder=folder)
            assert code == 1, said
            assert f"stack later is UPDATE_ROLLBACK_COMPLETE: {fault}: " in said
        assert stacks(cloud, "remove", name="later")[0] == 0

    def test_a_state_that_a_person_has_to_mend_is_told_before_anything_is_made(self, cloud: Cloud) -> None:
        stack = {"StackName": "review-foundation", "TemplateBody": (DEPLOY / "foundation.yaml").read_text()}
        cloud.client("cloudformation").create_change_set(**stack, ChangeSetName="one", ChangeSetType="CREATE")
        code, _, said = stacks(cloud, "deploy", *settings(**REQUIRED), name="review")
        assert code == 1
        assert "stack review-foundation is REVIEW_IN_PROGRESS: somebody made a change set" in said
        assert not [b for b in cloud.client("s3").list_buckets()["Buckets"] if b["Name"].startswith("review")]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What judges names and values, found as `stacks.py` finds it."""
    monkeypatch.syspath_prepend(str(DEPLOY))
    return import_module("parameters")


@pytest.fixture
def ask(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """`stacks` in this process, which is quicker."""
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(DEPLOY))
    command = import_module("stacks")

    def run(*arguments: str, name: str) -> tuple[int, str, str]:
        code = command.main(["--name", name, *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    with patient_clients():
        yield run


@pytest.fixture(scope="class")
def one(cloud: Cloud) -> Iterator[Cloud]:
    """A cloud with a first set in it, which has an identity and a namespace."""
    assert stacks(cloud, "deploy", *settings(**REQUIRED), name="one")[0] == 0
    yield cloud
    assert stacks(cloud, "remove", name="one")[0] == 0


class TestTwoSets:
    """What two sets in one account and region would share is refused before anything is made."""

    OWN: ClassVar = {"MakeMailIdentity": "no", "MetricsNamespace": "two"}

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({}, "SES of this account has the identity example.com already, and this stack did not make it. Add --set"),
            ({"MakeMailIdentity": "no"}, "MetricsNamespace 'linkwatch' is that of one: each would hide the other's"),
        ],
        ids=["identity", "namespace"],
    )
    def test_a_second_set_is_refused_what_is_the_first_one_s(
        self, one: Cloud, ask: Command, given: dict[str, str], words: str
    ) -> None:
        code, _, said = ask("deploy", *settings(**REQUIRED | given), name="two")
        assert (code, words in said) == (2, True), said
        assert not [b for b in one.client("s3").list_buckets()["Buckets"] if b["Name"].startswith("two")]

    def test_a_second_set_leaves_the_first_its_identity(self, one: Cloud, ask: Command) -> None:
        assert ask("deploy", *settings(**REQUIRED | self.OWN), name="two")[0] == 0
        for arguments, words in (
            (["remove"], "made the identity example.com and would delete it, and two could send no mail"),
            (["deploy", *settings(MakeMailIdentity="no")], "MakeMailIdentity=no would delete it"),
            (["deploy", *settings(MailIdentity="example.org", MailFrom="a@example.org")], "Remove two first"),
        ):
            code, _, said = ask(*arguments, name="one")
            assert (code, words in said) == (2, True), said
        assert ask("remove", name="two")[0] == 0
        assert one.client("sesv2").get_email_identity(EmailIdentity="example.com")

    def test_a_stack_of_somebody_else_is_neither_overwritten_nor_removed(self, one: Cloud, ask: Command) -> None:
        theirs = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
        one.client("cloudformation").create_stack(StackName="theirs", TemplateBody=json.dumps(theirs))
        for arguments in (["deploy", *settings(**REQUIRED | self.OWN)], ["remove"]):
            said = (
                "stacks.py: the stack theirs that is there is none of linkwatch's (application). Take another NAME.\n"
            )
            assert ask(*arguments, name="theirs") == (2, "", said)
        assert one.client("cloudformation").describe_stacks(StackName="theirs")["Stacks"]

    def test_who_may_not_ask_is_refused_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(DEPLOY))
        sharing = import_module("sharing")
        then = {"MakeMailIdentity": "yes", "MailIdentity": "example.com"}
        for service, call, code in (
            ("sesv2", "get_email_identity", "AccessDeniedException"),
            ("cloudformation", "describe_stacks", "AccessDenied"),
        ):
            client = boto3.client(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
            with Stubber(client) as denied:
                denied.add_client_error(call, code, http_status_code=403)
                if service == "sesv2":
                    sharing.check_identity(client, {}, then)
                else:
                    assert sharing.neighbours(client, "one") == ()
                denied.assert_no_pending_responses()


def test_an_aws_that_is_silent_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], judge: ModuleType
) -> None:
    command = import_module("stacks")
    quick = command.QUICK
    longest_pauses = 1 + 2  # of botocore's standard mode, before a second and a third attempt
    for timeout in (quick.connect_timeout, quick.read_timeout):
        assert timeout * quick.retries["total_max_attempts"] + longest_pauses <= 30
    monkeypatch.setattr(command, "QUICK", Config(read_timeout=0.1, retries={"total_max_attempts": 1}))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            monkeypatch.setenv(name, "us-east-1")
        assert command.main(["status"]) == 2
    assert "stacks.py: Read timeout on endpoint URL" in capsys.readouterr().err


class TestRefusals:
    """Before anything is made."""

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"Contacts": "x"}, "there is no parameter Contacts; there are AlertEmail"),
            ({"CodeKey": "x"}, "there is no parameter CodeKey; there are AlertEmail"),
            ({"Contact": "our team"}, "Contact must be a URL or an e-mail address, without spaces"),
            ({"MailFrom": "nobody"}, "MailFrom must look like ^[^@\\s]+@[^@\\s]+$, not 'nobody'."),
            (
                {"AllowedHosts": "http://x.org/a"},
                "AllowedHosts must be host names, separated by commas, without scheme",
            ),
            ({"Confirm": "0"}, "Confirm must be a whole number from 1 to 10, not '0'."),
            ({"Confirm": "two"}, "Confirm must be a whole number from 1 to 10, not 'two'."),
            ({"NetworkProfile": "none"}, "NetworkProfile must be one of plain, egress, not 'none'."),
            ({"Breaker": "yes"}, "Breaker must be one of true, false, not 'yes'."),
            ({"Allowances": "docs.example.com=2"}, 'Allowances must be JSON such as {"docs.example.com": {"visits"'),
            ({"Allowances": "{" + " " * 3000 + "}"}, "Allowances must have at most 3000 characters"),
            ({"WeeklySchedule": "every Monday"}, "WeeklySchedule must look like"),
            ({"WeeklyRepeatSchedule": "rate(0 days)"}, "WeeklyRepeatSchedule must be rate(1 minute), rate(2 minutes)"),
            ({"WeeklySchedule": "rate(1 days)"}, "WeeklySchedule must be rate(1 minute), rate(2 minutes)"),
            ({"WeeklySchedule": "rate(5 minute)"}, "WeeklySchedule must be rate(1 minute), rate(2 minutes)"),
            ({"WeeklySchedule": "rate(1 week)"}, "WeeklySchedule must be rate(1 minute), rate(2 minutes)"),
            ({"WeeklySchedule": "cron(0 9 ? * MON)"}, "WeeklySchedule must be cron() of six fields"),
            ({"WeeklySchedule": "cron(0 25 ? * MON *)"}, "WeeklySchedule must have other hours than '25'"),
            ({"WeeklySchedule": "cron(*/0 9 ? * MON *)"}, "WeeklySchedule must have other minutes than '*/0'"),
            ({"WeeklySchedule": "cron(0 9 ? * MOON *)"}, "WeeklySchedule must have other day of week than 'MOON'"),
            ({"WeeklySchedule": "cron(0 9 * * MON *)"}, "WeeklySchedule must have ? for either"),
            ({"WeeklySchedule": "at(2026-13-01T09:00:00)"}, "WeeklySchedule must be a moment such as at("),
            (
                {"MetricsNamespace": "AWS/Lambda"},
                "MetricsNamespace must be 1 to 255 letters, digits, _, -, ., / or #, not",
            ),
            ({"MetricsNamespace": ""}, "MetricsNamespace must be 1 to 255 letters, digits"),
            ({"AlertTopicArn": "team"}, "AlertTopicArn must be the ARN of a standard SNS topic, or empty, not 'team'."),
        ],
    )
    def test_a_parameter_is_refused_by_name(self, judge: ModuleType, given: dict[str, str], words: str) -> None:
        templates = {name: judge.parameters_of(name) for name in ("foundation", "application")}
        judge.check_settings(REQUIRED | {"AlertTopicArn": "", "AlertEmail": "a@b.example"}, templates)
        judge.check_settings({"MetricsNamespace": "ours/AWS/x"}, templates)
        with pytest.raises(judge.Refused, match=re.escape(words)):
            judge.check_settings(REQUIRED | given, templates)

    @pytest.mark.parametrize(
        "expression",
        [
            "rate(1 day)",
            "rate(10 minutes)",
            "at(2026-09-28T09:00:00)",
            "cron(10,20,30,40,50 9 ? * MON *)",
            "cron(0/5 9-11 ? JAN-MAR mon,TUE 2026)",
            "cron(0 9 L * ? *)",
            "cron(0 9 ? * 2#1 *)",
        ],
    )
    def test_a_schedule_that_eventbridge_takes_is_taken(self, judge: ModuleType, expression: str) -> None:
        templates = {name: judge.parameters_of(name) for name in ("foundation", "application")}
        judge.check_settings({"WeeklySchedule": expression}, templates)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"AllowedHosts": "docs.example.com,exa mple.com"}, "AllowedHosts: 'exa mple.com' is not a host name"),
            ({"Allowances": '{"docs.example.com": 2}'}, "Allowances: 'docs.example.com' is not described rightly"),
            ({"Allowances": '{"x.org": {"visits": 2}}'}, "Allowances: 'x.org' has no agreed_with. Say in at most"),
            ({"Allowances": '{"x.org": }'}, 'Allowances must be a table, such as {"docs.example.com"'),
            ({"MailFrom": "a@b@c.example"}, "MailFrom"),
            ({"Contact": "a" * 201}, "Contact must be a URL or an e-mail address of at most 200 characters"),
            ({"TableName": "no table"}, "TableName must be the name of a DynamoDB table"),
            ({"MetricsNamespace": "AWS/foo"}, "MetricsNamespace must be 1 to 255 letters, digits, '_', '-', '.', '/'"),
            ({"QueueUrl": "queue"}, "QueueUrl must be the URL of an SQS queue"),
        ],
    )
    def test_what_a_function_would_refuse_is_refused_by_the_parameter(
        self, judge: ModuleType, given: dict[str, str], words: str
    ) -> None:
        hosts = {"AllowedHosts": "docs.example.com, example.org", "Canaries": "one,two", "Confirm": "3"}
        judge.check_functions_take(REQUIRED | hosts)
        with pytest.raises(judge.Refused, match=re.escape(words)) as refused:
            judge.check_functions_take(REQUIRED | hosts | given)
        assert "LINKWATCH_" not in str(refused.value)

    @pytest.mark.parametrize("sender", ["links@example.com", "links+week@example.com", "links@docs.Example.com"])
    def test_a_sender_is_an_address_of_the_identity_or_below_it(self, judge: ModuleType, sender: str) -> None:
        judge.check_sender({"MailFrom": sender, "MailIdentity": "example.com"})
        judge.check_sender({"MailFrom": sender, "MailIdentity": sender.replace("+week", "")})
        judge.check_sender({"MailFrom": sender, "MailIdentity": sender})
        for identity in ("example.org", "ample.com", "docs@example.com", "Links@example.com", "www.docs.example.com"):
            words = f"MailFrom '{sender}' is no address of MailIdentity '{identity}'"
            with pytest.raises(judge.Refused, match=re.escape(words)):
                judge.check_sender({"MailFrom": sender, "MailIdentity": identity})

    def test_a_table_that_is_none_of_linkwatch_s_is_refused(self, cloud: Cloud, ask: Command) -> None:
        cloud.client("dynamodb").create_table(TableName="theirs", BillingMode="PAY_PER_REQUEST", **keys("id", "at"))
        code, _, said = ask("deploy", *settings(**REQUIRED, TableName="theirs"), name="fresh")
        assert (code, said) == (
            2,
            "stacks.py: table theirs has the keys id, at and not pk, sk: it is none of linkwatch's.\n",
        )

    @pytest.mark.parametrize(
        "name", ["Bad_Name", "9lives", "two--hyphens", "end-", "sthree-lw", "Links", "", "lw\n", "lw-foundation"]
    )
    def test_a_name_that_a_bucket_or_a_stack_cannot_have_is_refused(self, judge: ModuleType, name: str) -> None:
        judge.check_name("lw-2", "lw-2-code-000000000000-us-east-1")
        with pytest.raises(judge.Refused, match="cannot be used"):
            judge.check_name(name, "bucket")

    def test_a_name_whose_bucket_would_be_too_long_is_refused(self, judge: ModuleType) -> None:
        judge.check_name("l" * 35, "l" * 35 + "-code-000000000000-us-east-1")
        with pytest.raises(judge.Refused, match="may have 35 characters, it has 36"):
            judge.check_name("l" * 36, "l" * 36 + "-code-000000000000-us-east-1")

    @pytest.mark.parametrize(
        ("arguments", "name", "words"),
        [
            (settings(Contact="links@example.com"), "fresh", 'Add ARGS="--set MailFrom=... --set MailIdentity=..."'),
            (settings(**REQUIRED, Confirm="0"), "fresh", "Confirm must be"),
            (settings(**REQUIRED, AllowedHosts="exa mple.com"), "fresh", "AllowedHosts: 'exa mple.com' is not a host"),
            (settings(**REQUIRED | {"MailIdentity": "example.org"}), "fresh", "is no address of MailIdentity"),
            (settings(**REQUIRED, TableName="nope-nope"), "fresh", "there is no table nope-nope in us-east-1"),
            (settings(**REQUIRED), "Bad_Name", "NAME 'Bad_Name' cannot be used"),
            (settings(**REQUIRED, WeeklySchedule="cron(0 12 ? * TUE *)"), "fresh", "WeeklySchedule goes with"),
            ([*settings(**REQUIRED), *settings(Contact="b@example.com")], "fresh", "Contact is given more than once"),
            ([*settings(**REQUIRED), "--code", "x.zip"], "fresh", "there is no zip x.zip in fresh-code-"),
            (
                [*settings(**REQUIRED), "--with", "/no/such/file"],
                "fresh",
                "stacks.py: --with /no/such/file cannot be packed: No such file or directory. Name a file",
            ),
            ([*settings(**REQUIRED), "--with", "/"], "fresh", "stacks.py: --with / cannot be packed: Is a directory"),
            ([*settings(**REQUIRED), "--with", "x", "--code", "x.zip"], "fresh", "stacks.py: --with packs a file into"),
        ],
        ids=[
            "missing",
            "value",
            "hosts",
            "sender",
            "table",
            "name",
            "schedule",
            "twice",
            "zip",
            "file",
            "folder",
            "both",
        ],
    )
    def test_nothing_is_made_then(
        self, cloud: Cloud, ask: Command, arguments: list[str], name: str, words: str
    ) -> None:
        code, printed, said = ask("deploy", *arguments, name=name)
        assert (code, printed) == (2, "")
        assert words in said
        assert not [b for b in cloud.client("s3").list_buckets()["Buckets"] if b["Name"].startswith(name)]
        stacks_there = cloud.client("cloudformation").list_stacks()["StackSummaries"]
        assert not [stack for stack in stacks_there if stack["StackName"].startswith(name)]


def test_without_stacks_there_is_no_status_and_nothing_to_remove(ask: Command) -> None:
    assert ask("status", name="typo") == (
        1,
        "",
        "stacks.py: there is no stack typo-foundation in us-east-1.\n",
    )
    removed = ask("remove", name="typo")
    assert removed == (1, "", "stacks.py: there is no stack typo or typo-foundation in us-east-1.\n")


@pytest.mark.parametrize("target", ["deploy", "remove"])
def test_make_hands_a_name_on_as_it_is(tmp_path: Path, target: str) -> None:
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "installed").touch()
    name = """x y"; 'z'"""
    command = ["make", "-s", "-C", str(ROOT), target, f"NAME={name}", f"BIN={tmp_path}", f"STAMP={tmp_path}/installed"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["deploy/stacks.py", "--name", name, target]
