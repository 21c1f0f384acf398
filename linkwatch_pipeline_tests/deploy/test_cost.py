"""The cost page is what the script computes, and the script counts what the templates and the measurement say."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from linkwatch_pipeline.adapters.metrics.cloudwatch import CloudWatchMetrics
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.cloud.change_units import units_of_a_change
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.deploy.templates import DEPLOY, ROOT, read_template, resources
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

PAGE = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")


@cache
def printed(*arguments: str) -> list[str]:
    command = [sys.executable, str(DEPLOY / "cost.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


def row(name: str, *arguments: str) -> list[float]:
    [line] = [line for line in printed(*arguments) if line.startswith(f"| {name} |")]
    return [float(cell.replace(",", "")) for cell in line.strip("| ").split(" | ")[1:]]


def test_the_page_shows_both_tables_as_they_are_computed() -> None:
    shown = PAGE.splitlines()
    where = [shown.index(line) for line in printed() if line and not line.startswith("|---")]
    assert where == sorted(where)
    assert len(where) == len([line for line in printed() if line.startswith("| ")])


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, for what it counts with."""
    monkeypatch.syspath_prepend(str(DEPLOY))
    return import_module("cost")


def test_alarms_calls_and_memory_are_those_of_the_templates(cost: ModuleType) -> None:
    foundation, application = read_template("foundation"), read_template("application")
    alarms = [name for each in (foundation, application) for name in resources(each, "AWS::CloudWatch::Alarm")]
    assert len(alarms) == cost.ALARMS
    schedules = [s["ScheduleExpression"] for s in resources(application, "AWS::Scheduler::Schedule").values()]
    assert schedules.count("cron(* * * * ? *)") == cost.CALLS_A_MINUTE
    assert schedules.count(f"cron(0/{cost.LOOKS_EVERY_MINUTES} * * * ? *)") == 1
    assert not [s for s in schedules if isinstance(s, str) and not s.startswith(("cron(* *", "cron(0/5"))]
    memory = {function["MemorySize"] for function in resources(application, "AWS::Lambda::Function").values()}
    assert memory == {cost.MEMORY_GB * 1024}
    assert len(resources(application, "AWS::Lambda::EventSourceMapping")) == cost.MAPPINGS
    (destination,) = resources(application, "AWS::SES::ConfigurationSetEventDestination").values()
    told = {"send", "delivery"} & set(destination["EventDestination"]["MatchingEventTypes"])
    assert len(told) == cost.EVENTS_A_MAIL


def test_the_numbers_of_a_look_are_counted_as_the_function_puts_them(cost: ModuleType) -> None:
    class CloudWatch:
        """Notes what it is asked, as boto3's client is asked."""

        def __init__(self) -> None:
            self.requests: list[list[str]] = []

        def put_metric_data(self, **asked: Any) -> None:
            self.requests.append([datum["MetricName"] for datum in asked["MetricData"]])

    seen = CloudWatch()
    with closing(SqliteStore.open(Path(":memory:"))) as store:
        watch_health(store, CloudWatchMetrics(seen, namespace="n"), clock=VirtualClock(), only_reads=True)
    names = [name for request in seen.requests for name in request]
    assert len(set(names)) == len(seen.requests) == cost.METRICS


def test_a_change_costs_what_was_measured(cost: ModuleType, ministack: Cloud) -> None:
    units = units_of_a_change(ministack, links=10)
    assert units["write units of a change"] == pytest.approx(cost.CHANGE_WRITE_UNITS, rel=0.1)
    assert units["read units of an idle minute"] == pytest.approx(cost.IDLE_READ_UNITS, abs=1)


def test_whoever_reads_only_its_head_sees_no_traceback() -> None:
    command = f"{sys.executable} {DEPLOY / 'cost.py'} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_a_hundred_times_the_links_are_a_hundred_times_the_writes_and_no_more_polling() -> None:
    small, large = row("DynamoDB writes", "--links", "60000")[0], row("DynamoDB writes", "--links", "6000000")[0]
    assert large == pytest.approx(100 * small, rel=0.02)
    assert row("SQS, polling empty queues", "--links", "60000") == row(
        "SQS, polling empty queues", "--links", "6000000"
    )


def test_the_sum_is_of_its_rows() -> None:
    parts = [line for line in printed() if line.startswith("| ") and "links" not in line][:12]
    sums = [sum(float(line.strip("| ").split(" | ")[column].replace(",", "")) for line in parts) for column in (1, 2)]
    assert row("**a week**") == pytest.approx(sums, abs=0.06)


@pytest.mark.parametrize("option", ["--links", "--concurrency"])
def test_a_week_of_nothing_is_refused(cost: ModuleType, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cost.main([option, "0"])
    assert f"argument {option}: '0' is not a whole number from 1 on" in capsys.readouterr().err
