"""A run or a mute that cannot be read costs what hangs on it, and nothing else (decision 0045)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.health_findings import Finding
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import Ruling, RulingKind, RunState
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.ports import Metrics
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.dead_letters import dead_letters
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, due_notices
from linkwatch_pipeline.use_cases.mute import lift_mutes, list_mutes, mute, unmute
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.tick import tick
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_run, dispatched
from linkwatch_pipeline_tests.contracts.spoiling import spoil_row
from linkwatch_pipeline_tests.use_cases.office import Office

A, B = "https://docs.example.com/a", "https://wiki.example.com/b"


@pytest.fixture
def office(office_on_disk: Office) -> Office:
    return office_on_disk


class Numbers(Metrics):
    """Takes what is published."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def put(self, name: str, value: float, *, unit: str = "Count", at: datetime) -> None:
        self.names.append(name)


def spoil(folder: Path, table: str, key: str, **fields: object) -> None:
    spoil_row(folder / "linkwatch.sqlite3", table, key, **fields)


def due(office: Office) -> list[str]:
    return [notice.transition_id for notice in due_notices(office.store, now=office.clock.now())]


def look(office: Office, surveyor: Surveyor | None = None, *, only_reads: bool = False) -> tuple[Finding, ...]:
    return watch_health(office.store, None, clock=office.clock, surveyor=surveyor, only_reads=only_reads)


# runs


@pytest.fixture
def closed(office: Office, tmp_path: Path) -> Office:
    """A damaged run that is over, of which `a` and `b` are to be told; `c` broke in a check by hand."""
    office.watch(a=A, b=B)
    office.run({"a": 404, "b": 404})
    office.break_link("c")
    spoil(tmp_path, "runs", RUN_ID, expected="b")
    return office


def test_only_the_notices_of_a_damaged_run_wait(closed: Office, tmp_path: Path) -> None:
    assert due(closed) == ["c:1"]
    report = closed.deliver()
    assert (report, report.unsent) == (DeliveryReport(sent=1, waiting=2), 2)
    assert closed.notice("a:1").release_at is None  # nobody decided about it
    spoil(tmp_path, "runs", RUN_ID, expected=2)
    assert closed.deliver() == DeliveryReport(sent=2)
    assert closed.provider.told == ["c:1", "a:1", "b:1"]


def test_they_wait_even_if_they_were_released_already(office: Office, tmp_path: Path) -> None:
    office.employ(delivery=Delivery.DIGEST)
    office.watch(a=A)
    office.run({"a": 404})
    released = replace(office.notice("a:1"), release_at=office.clock.now())
    assert office.store.update_notice(released, replaces=office.notice("a:1"))
    spoil(tmp_path, "runs", RUN_ID, expected="b")
    assert (due(office), office.deliver()) == ([], DeliveryReport(waiting=1))


def test_held_notices_of_a_damaged_run_stay_held(office: Office, tmp_path: Path) -> None:
    office.watch(a=A)
    office.run({"a": 404})
    assert office.store.rule_on_run(
        RUN_ID, Ruling(kind=RulingKind.HELD, at=office.clock.now(), why="much"), replaces=None
    )
    assert office.deliver() == DeliveryReport(held=1)
    spoil(tmp_path, "runs", RUN_ID, expected="b")
    assert office.deliver() == DeliveryReport(held=1)
    assert office.statuses()["a:1"] is NoticeStatus.HELD


def test_where_nobody_knows_which_run_it_is_those_of_unknown_runs_wait(closed: Office, tmp_path: Path) -> None:
    spoil(tmp_path, "runs", RUN_ID, run_id=b"no text")
    assert closed.deliver() == DeliveryReport(sent=1, waiting=2)


@pytest.mark.parametrize("only_reads", [False, True])
def test_health_names_a_damaged_run_and_goes_on(closed: Office, only_reads: bool) -> None:
    closed.clock.advance(timedelta(hours=7))
    numbers = Numbers()
    found = watch_health(closed.store, numbers, clock=closed.clock, only_reads=only_reads)
    codes = [finding.code for finding in found]
    assert [f.subject for f in found if f.code == "record_damaged"] == [f"runs: {RUN_ID}"]
    assert "run_missing" not in codes  # it is there
    assert numbers.names[-1] == "Heartbeat"


def test_a_damaged_week_is_not_taken_for_one_that_nobody_ran(closed: Office) -> None:
    closed.clock.advance(WEEK)
    assert [f.subject for f in look(closed) if f.code == "week_missed"] == []
    run = start_week(closed.store, MONDAY + WEEK, now=closed.clock.now())
    assert run.state is RunState.DISPATCHING
    assert list(closed.store.runs(damaged=Damage())) == [run]
    with pytest.raises(DamagedRecord):
        start_week(closed.store, MONDAY, now=closed.clock.now())


def test_the_tick_leaves_a_damaged_run_and_goes_on_with_the_others(closed: Office) -> None:
    retry = a_run(run_id=f"{RUN_ID}+retry1", retry_of=RUN_ID, started_at=closed.clock.now())
    closed.store.create_run(retry)
    list(tick(closed.store, now=closed.clock.now()))
    [open_run] = closed.store.runs(damaged=Damage())
    assert open_run.state is not RunState.DISPATCHING


def test_the_dead_letters_of_other_runs_are_listed(closed: Office) -> None:
    damage = Damage()
    assert list(dead_letters(closed.store, now=closed.clock.now(), damaged=damage)) == []
    assert [error.key for error in damage.records] == [RUN_ID]


# leases


def test_a_host_whose_lease_is_damaged_waits_is_named_and_goes_on_when_it_is_mended(
    office: Office, tmp_path: Path
) -> None:
    office.watch(a=A, b=B)
    for host in ("docs.example.com", "wiki.example.com"):
        office.store.acquire_host(host, token="worker", job_id="", now=MONDAY, skew=timedelta(0))
    dispatched(office.store, list(office.store.links()))
    spoil(tmp_path, "hosts", "wiki.example.com", next_allowed_at="banana")
    assert [f.subject for f in look(office) if f.code == "record_damaged"] == ["hosts: wiki.example.com"]
    assert [job.link_id for job, _ in tick(office.store, now=office.clock.now())] == ["a"]
    spoil(tmp_path, "hosts", "wiki.example.com", next_allowed_at=None)
    assert [f.subject for f in look(office) if f.code == "record_damaged"] == []
    assert [job.link_id for job, _ in tick(office.store, now=office.clock.now())] == ["b"]


# mutes


@pytest.fixture
def muted(office: Office) -> Office:
    """`a` and `b` broke, on two hosts; both a link and a host are muted."""
    office.break_link("a", url=A)
    office.break_link("b", url=B)
    return office


def damage_mute(office: Office, folder: Path, muted: str, **fields: object) -> None:
    now = office.clock.now()
    mute(office.store, muted, until=(now + timedelta(days=3)).isoformat(), reason="known", by=None, now=now)
    spoil(folder, "mutes", muted, **(fields or {"until": "banana"}))


@pytest.mark.parametrize("target", ["link:b", "host:wiki.example.com"])
def test_only_what_a_damaged_mute_may_cover_waits(muted: Office, tmp_path: Path, target: str) -> None:
    damage_mute(muted, tmp_path, target)
    assert due(muted) == ["a:1"]
    report = muted.deliver()
    assert (report, report.unsent) == (DeliveryReport(sent=1, waiting=1), 1)
    spoil(tmp_path, "mutes", target, until=(muted.clock.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    assert muted.deliver() == DeliveryReport(muted=1)


@pytest.mark.parametrize("key", [b"no text", "nonsense"])
def test_all_wait_where_nobody_knows_what_is_muted(muted: Office, tmp_path: Path, key: object) -> None:
    damage_mute(muted, tmp_path, "link:b", until="banana", target=key)
    assert (due(muted), muted.deliver()) == ([], DeliveryReport(waiting=2))


def test_what_another_mute_kept_quiet_is_not_told_while_a_damaged_one_may_go_on(muted: Office, tmp_path: Path) -> None:
    now = muted.clock.now()
    mute(muted.store, "link:b", until=(now + timedelta(days=1)).isoformat(), reason="known", by=None, now=now)
    assert muted.deliver() == DeliveryReport(sent=1, muted=1)
    damage_mute(muted, tmp_path, "host:wiki.example.com")
    muted.clock.advance(timedelta(days=2))
    damage = Damage()
    lift_mutes(muted.store, now=muted.clock.now(), damaged=damage)
    assert [error.key for error in damage.records] == ["host:wiki.example.com"]
    assert muted.statuses()["b:1"] is NoticeStatus.MUTED
    [ended] = muted.store.mutes(damaged=Damage())
    assert ended.lifted_at is None


def test_health_names_a_damaged_mute_at_once_and_until_it_is_mended(muted: Office, tmp_path: Path) -> None:
    surveyor = Surveyor()
    assert [f for f in look(muted, surveyor) if f.code == "record_damaged"] == []
    damage_mute(muted, tmp_path, "link:b")
    assert [f.subject for f in look(muted, surveyor) if f.code == "record_damaged"] == ["mutes: link:b"]
    spoil(tmp_path, "mutes", "link:b", until="2026-12-24T00:00:00.000000Z")
    assert [f for f in look(muted, surveyor) if f.code == "record_damaged"] == []


def test_other_mutes_are_listed_made_and_ended_beside_a_damaged_one(muted: Office, tmp_path: Path) -> None:
    damage_mute(muted, tmp_path, "link:b")
    now, damage = muted.clock.now(), Damage()
    until = (now + timedelta(days=3)).isoformat()
    mute(muted.store, "a", until=until, reason="known", by=None, now=now)
    assert [view.mute.target for view in list_mutes(muted.store, damaged=damage)] == ["link:a"]
    assert [error.key for error in damage.records] == ["link:b"]
    unmute(muted.store, "a", now=now)
    with pytest.raises(DamagedRecord):
        mute(muted.store, "b", until=until, reason="known", by=None, now=now)
    with pytest.raises(DamagedRecord):
        unmute(muted.store, "b", now=now)
