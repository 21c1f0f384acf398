"""`linkwatch health`: the verdict for a person, alarms for on-call, and the watchdog behind both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.runs import weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, week_start
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.world.on_call import OnCallServer

LINKWATCH = Path(sys.executable).parent / "linkwatch"
SECONDS = 60.0  # of patience with a process


@pytest.fixture
def on_call(monkeypatch: pytest.MonkeyPatch) -> Iterator[OnCallServer]:
    with OnCallServer().running() as server:
        monkeypatch.setenv("LINKWATCH_OPS_WEBHOOK", server.url)
        yield server


@pytest.fixture
def missed(terminal: Terminal, midweek: datetime) -> Terminal:
    """A home in which a link has been watched for two weeks, and nobody has run anything."""
    terminal.fine("init")
    with build_app(terminal.home, env={}) as app:
        since = week_start(midweek) - WEEK - timedelta(hours=1)
        url = "https://docs.example.com/guide"
        register_link(app.store, link_id="guide", url=url, owner="docs", notify="docs@example.com", now=since)
    return terminal


def alarms(terminal: Terminal) -> list[Any]:
    """What stands in the home's file of alarms."""
    file = terminal.home / "alarms.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_new_home_is_well_and_nobody_is_told(terminal: Terminal, on_call: OnCallServer) -> None:
    assert terminal.fine("health").out == "healthy\n"
    assert terminal.fine("health", "--history").out == "every week was run in time\n"
    assert (on_call.calls, alarms(terminal)) == (0, [])
    assert not (terminal.home / "metrics.jsonl").exists()  # nobody repeats this look: it is no heartbeat


def test_what_is_critical_is_told_once_and_a_missed_week_stays_in_the_history(
    missed: Terminal, midweek: datetime, on_call: OnCallServer
) -> None:
    for _ in range(2):
        said = missed.run("health", "--json")
        assert (said.code, said.err) == (1, "")
        assert {"run_missing", "week_missed"} <= {finding["code"] for finding in said.document["findings"]}
    assert [alarm["kind"] for alarm in on_call.told] == ["unhealthy"]
    assert alarms(missed) == on_call.told
    gap = weekly_run_id(week_start(midweek) - WEEK)
    assert gap in missed.fine("health", "--history").out
    assert [(t["run_id"], t["what"]) for t in missed.fine("health", "--history", "--json").document] == [
        (gap, "missed")
    ]


def test_a_webhook_that_is_down_is_named_and_the_alarm_kept(missed: Terminal, on_call: OnCallServer) -> None:
    on_call.script = [500]
    with build_app(missed.home, env={}) as app:
        before = app.clock.now()
    assert "on-call is not told yet: ops_webhook at 127.0.0.1 answered 500" in missed.run("health").err
    assert on_call.told == []
    assert missed.run("health").err == ""
    assert [alarm["kind"] for alarm in on_call.told] == ["unhealthy"]
    assert on_call.told[0]["at"] >= before.isoformat()[:19]


def test_a_store_that_cannot_be_read_is_told_too(terminal: Terminal, on_call: OnCallServer) -> None:
    terminal.fine("init")
    (terminal.home / "linkwatch.sqlite3").write_bytes(b"no database at all" * 100)
    assert "damaged or not a linkwatch database" in terminal.refused("health")
    assert [finding["code"] for alarm in on_call.told for finding in alarm["findings"]] == ["look_failed"]


def test_the_watchdog_tells_of_a_check_that_nobody_makes(terminal: Terminal, on_call: OnCallServer) -> None:
    terminal.fine("init")
    for _ in range(2):
        said = terminal.run("health", "--watchdog", "--json")
        assert (said.code, [finding["code"] for finding in said.document["findings"]]) == (1, ["heartbeat_missing"])
    terminal.fine("health")
    assert terminal.fine("health", "--watchdog").out == "healthy\n"
    assert [(alarm["kind"], alarm["source"]) for alarm in on_call.told] == [
        ("unhealthy", "watchdog"),
        ("recovered", "watchdog"),
    ]


def test_the_watchdog_needs_no_database(terminal: Terminal, on_call: OnCallServer) -> None:
    terminal.fine("health")
    (terminal.home / "linkwatch.sqlite3").write_bytes(b"no database at all" * 100)
    assert terminal.fine("health", "--watchdog").out == "healthy\n"


@pytest.mark.parametrize(
    "words", [("--watch", "--json"), ("--watch", "--watchdog"), ("--watchdog", "--history"), ("--watch", "--history")]
)
def test_options_that_exclude_each_other_are_refused(terminal: Terminal, words: tuple[str, ...]) -> None:
    terminal.fine("init")
    assert "--watch" in terminal.refused("health", *words)


def test_a_check_that_watches_outlives_the_database_and_says_that_it_is_gone(
    terminal: Terminal, on_call: OnCallServer
) -> None:
    terminal.fine("init")
    (terminal.home / "linkwatch.sqlite3").write_bytes(b"no database at all" * 100)
    words = [str(LINKWATCH), "--home", str(terminal.home), "health", "--watch"]
    watching = subprocess.Popen(words, env=dict(os.environ), stdout=subprocess.DEVNULL)
    try:
        _wait(lambda: bool(on_call.told), watching)
        assert watching.poll() is None
    finally:
        watching.kill()
        watching.wait(SECONDS)
    assert [finding["code"] for finding in on_call.told[0]["findings"]] == ["look_failed"]


def _wait(until: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + SECONDS
    while not until():
        assert clock.monotonic() < deadline, "it never happens"
        try:
            process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"it ended with status {process.returncode}")
