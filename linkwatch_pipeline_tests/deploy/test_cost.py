"""The cost page is what the script computes, and the script counts what the templates and the measurement say."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from linkwatch_pipeline_tests.deploy.templates import DEPLOY, ROOT, read_template, resources

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


def test_every_alarm_of_the_templates_is_paid_for() -> None:
    alarms = sum(
        len(resources(read_template(name), "AWS::CloudWatch::Alarm")) for name in ("foundation", "application")
    )
    assert f"\nALARMS = {alarms}\n" in (DEPLOY / "cost.py").read_text(encoding="utf-8")


def test_a_hundred_times_the_links_are_a_hundred_times_the_writes_and_no_more_polling() -> None:
    small, large = row("DynamoDB writes", "--links", "60000")[0], row("DynamoDB writes", "--links", "6000000")[0]
    assert large == pytest.approx(100 * small, rel=0.02)
    assert row("SQS, polling empty queues", "--links", "60000") == row(
        "SQS, polling empty queues", "--links", "6000000"
    )


def test_the_sum_is_of_its_rows() -> None:
    parts = [line for line in printed() if line.startswith("| ") and "links" not in line][:11]
    sums = [sum(float(line.strip("| ").split(" | ")[column].replace(",", "")) for line in parts) for column in (1, 2)]
    assert row("**a week**") == pytest.approx(sums, abs=0.06)
