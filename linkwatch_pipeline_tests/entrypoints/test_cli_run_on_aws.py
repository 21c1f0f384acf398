"""`linkwatch run` in the profile aws: it sends the week's work to the queue and follows it; a real worker works."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.bootstrap import outage_words
from linkwatch_pipeline.domain.errors import (
    LinkwatchError,
    QueueError,
    QueueUnusable,
    StoreUnavailable,
    StoreUnusable,
)
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.entrypoints.cli.outlast import outlast
from linkwatch_pipeline.entrypoints.cli.run import _our_error
from linkwatch_pipeline_tests.builders import a_link
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.shared_worker import make_shared, working
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

NOW = datetime(2026, 9, 28, 9, tzinfo=UTC)


def test_a_week_is_followed_to_its_end_while_another_process_checks(
    ministack: Cloud, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = make_shared(ministack)
    for name, value in shared.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
    active_since = week_start(SystemClock().now()) - timedelta(days=1)
    with closing(store_on(ministack.client("dynamodb"), shared.table)) as store:
        for name in ("1", "2"):  # refused by our own policy before any connection: nothing leaves this machine
            store.save_link(a_link(name, f"http://127.0.0.{name}/", active_since=active_since), replaces=None)
    with working(shared, tmp_path / "elsewhere"):
        done = terminal.fine("run", "--json")
    [run] = done.document["runs"]
    assert (run["state"], run["outcomes"]) == ("closed", {"uncertain": 2})
    shown = [line.split(maxsplit=1)[1] for line in done.err.splitlines() if line.startswith(run["run_id"])]
    assert (shown[0], shown[-1]) == ("0/2", "2/2  uncertain 2")
    assert len(shown) == len(set(shown))  # though each of the hosts is a step of its own
    assert not (terminal.home / "linkwatch.sqlite3").exists()


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("LINKWATCH_TABLE", ("setting table, 'nobody-made-it'", "table is not there")),
        ("LINKWATCH_QUEUE_URL", ("setting queue_url", "/nobody-made-it", "look at its URL")),
    ],
)
def test_a_run_over_a_table_or_a_queue_that_is_not_there_begins_nothing(
    ministack: Cloud, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: str, told: tuple[str, ...]
) -> None:
    shared = make_shared(ministack)
    wrong = shared.queue_url.rpartition("/")[0] + "/nobody-made-it" if "QUEUE" in variable else "nobody-made-it"
    for name, value in {**shared.env, variable: wrong}.items():
        monkeypatch.setenv(name, value)
    sentence = terminal.refused("run")
    assert all(words in sentence for words in told), sentence
    with closing(store_on(ministack.client("dynamodb"), shared.table)) as store:
        assert list(store.runs()) == []


def test_a_fault_that_is_none_of_ours_and_goes_round_in_circles_is_no_endless_search() -> None:
    """As Dagster builds it: the step's own error is the cause of Dagster's, in whose context it came about."""
    step, fault = RuntimeError("the step failed"), ValueError("anything")
    step.__cause__, fault.__context__ = fault, step
    assert _our_error(step) is None
    fault.__cause__ = ours = StoreUnavailable("no table today")
    assert _our_error(step) is ours


def test_an_outage_of_any_step_is_told_with_its_cause_and_gone_on_after() -> None:
    clock, told = VirtualClock(NOW), list[str]()
    faults = iter([StoreUnavailable("no table today."), StoreUnavailable("still none."), QueueError("no queue.")])

    def look() -> None:
        if (fault := next(faults, None)) is not None:
            raise fault

    def attempt() -> str:
        look()
        return "done"

    def tell_outage(fault: LinkwatchError | None) -> None:
        told.append(outage_words(fault))

    assert outlast(attempt, look=look, clock=clock, wait=clock.advance, tell_outage=tell_outage) == "done"
    assert (len(told), clock.now() - NOW) == (2, timedelta(seconds=5 + 10 + 20))
    assert told[0].startswith("waits: no table today. This run does so by itself")
    assert "within four" in told[1]


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        (QueueUnusable("gone"), timedelta(0)),
        (StoreUnusable("gone"), timedelta(0)),
        (StoreUnavailable("away"), timedelta(hours=6)),
    ],
)
def test_what_no_waiting_mends_is_raised(fault: LinkwatchError, waited: timedelta) -> None:
    clock = VirtualClock(NOW)

    def attempt() -> None:
        raise fault

    with pytest.raises(type(fault)):
        outlast(attempt, look=attempt, clock=clock, wait=clock.advance, tell_outage=lambda _: None)
    assert waited <= clock.now() - NOW <= waited + timedelta(minutes=1)
