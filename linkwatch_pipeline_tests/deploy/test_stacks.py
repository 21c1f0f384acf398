"""One command deploys both stacks on the emulator, again changes nothing, and one removes them; the table stays.

What CloudFormation does with a change that fails, no emulator here shows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack
from linkwatch_pipeline_tests.deploy.templates import DEPLOY

REQUIRED = {"Contact": "links@example.com", "MailFrom": "links@example.com", "MailIdentity": "example.com"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """One of its own: what it holds can be told whole."""
    with started_ministack(tmp_path_factory.mktemp("stacks")) as started:
        yield started


def stacks(cloud: Cloud, *arguments: str) -> tuple[int, str, str]:
    """Run the command; its exit code, what it printed, what it said."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | dict(cloud.env)
    command = [sys.executable, str(DEPLOY / "stacks.py"), "--name", "lw", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env, cwd=Path(os.sep))
    return done.returncode, done.stdout, done.stderr


def settings(**given: str) -> list[str]:
    return [part for name, value in given.items() for part in ("--set", f"{name}={value}")]


def test_what_is_deployed_is_there_stays_and_goes(cloud: Cloud) -> None:
    code, printed, said = stacks(cloud, "deploy", *settings(**REQUIRED, ScheduleState="DISABLED"))
    assert code == 0, said
    assert printed.splitlines()[0] == 'profile = "aws"'
    functions = {f["FunctionName"]: f for f in cloud.client("lambda").list_functions()["Functions"]}
    assert sorted(functions) == ["lw-check", "lw-dispatch", "lw-health", "lw-mail-events", "lw-notify"]
    assert functions["lw-check"]["Timeout"] == 30
    schedules = cloud.client("scheduler").list_schedules()["Schedules"]
    assert sorted(s["State"] for s in schedules) == ["DISABLED", "DISABLED", "ENABLED", "ENABLED"]
    table = printed.split('table = "')[1].partition('"')[0]
    cloud.client("dynamodb").put_item(TableName=table, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})

    code, _, said = stacks(cloud, "deploy")
    assert code == 0, said
    assert said.count("is as it should be") == 2  # what was set before is still set

    code, _, said = stacks(cloud, "deploy", *settings(ScheduleState="ENABLED", TableName="restored"))
    assert code == 0, said
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


def test_a_parameter_that_does_not_exist_is_refused_before_anything_is_made(cloud: Cloud) -> None:
    code, printed, said = stacks(cloud, "deploy", *settings(**REQUIRED, Contacts="x"))
    assert (code, printed) == (2, "")
    assert "there is no parameter Contacts; there are AlertEmail" in said
    assert "Traceback" not in said


def test_without_stacks_there_is_no_status_and_nothing_to_remove(cloud: Cloud) -> None:
    code, _, said = stacks(cloud, "status")
    assert (code, said) == (2, "stacks.py: there is no stack lw-foundation in us-east-1.\n")
    assert stacks(cloud, "remove")[0] == 0
