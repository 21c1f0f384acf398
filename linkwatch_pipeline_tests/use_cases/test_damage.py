"""One record that cannot be read costs itself: all others are told, dispatched and checked (decision 0045)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.health_findings import MOST_NAMED, Severity
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus, RunState
from linkwatch_pipeline.domain.sequences import MAX_SEQUENCE
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, due_notices
from linkwatch_pipeline.use_cases.mute import lift_mutes, mute
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline.use_cases.redrive import redrive
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline.use_cases.work_on_queue import begin_on_queue, check_messages, tick_on_queue
from linkwatch_pipeline_tests.contracts.spoiling import spoil_row
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer
from linkwatch_pipeline_tests.use_cases.office import Office
from linkwatch_pipeline_tests.use_cases.test_scan import A, B, Book, register

SPOILT = {
    "links": {"state": "no such state"},
    "notices": {"status": "no such status"},
    "owners": {"delivery": "no such way"},
    "jobs": {"status": "no such status"},
}
PACE = Pace(concurrency=20, mean_service=timedelta(seconds=2), cooldown=timedelta(seconds=1))


@pytest.fixture
def office(office_on_disk: Office) -> Office:
    return office_on_disk


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = Engine(tmp_path, lambda url, asked: Answer(status=200))
    opened.register([f"https://{host}.example/{page}" for host in ("one", "two") for page in ("first", "second")])
    yield opened
    opened.store.close()


def spoil(folder: Path, table: str, key: str, **fields: Any) -> None:
    spoil_row(folder / "linkwatch.sqlite3", table, key, **(fields or SPOILT[table]))


# telling


def test_a_damaged_notice_is_left_and_the_others_are_sent(office: Office, tmp_path: Path) -> None:
    for name in ("a", "bad", "c"):
        office.break_link(name)
    spoil(tmp_path, "notices", "bad:1")
    assert [notice.transition_id for notice in due_notices(office.store, now=office.clock.now())] == ["a:1", "c:1"]
    report = office.deliver()
    assert (report, report.unsent) == (DeliveryReport(sent=2, damaged=1), 1)
    spoil(tmp_path, "notices", "bad:1", status="pending")
    assert office.deliver() == DeliveryReport(sent=1)
    assert [mail.transition_id for mail in office.provider.accepted] == ["a:1", "c:1", "bad:1"]


def test_what_is_damaged_is_logged_once_a_delivery(
    office: Office, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    office.break_link("bad")
    spoil(tmp_path, "notices", "bad:1")
    office.deliver()
    [line] = [record for record in caplog.records if "bad:1" in record.message]
    assert (line.levelname, vars(line)["record"]) == ("WARNING", "notices: bad:1")
    assert "mend the row" in line.message


def test_a_later_notice_of_the_same_link_waits_for_the_damaged_one(office: Office, tmp_path: Path) -> None:
    office.employ(delivery=Delivery.DIGEST)
    office.watch(a=A, bad=B)
    office.run({"a": 404, "bad": 404})
    office.clock.advance(timedelta(days=7))
    office.see("bad", 200)
    spoil(tmp_path, "notices", "bad:1")
    assert office.deliver() == DeliveryReport(sent=1, waiting=1, damaged=1)
    spoil(tmp_path, "notices", "bad:1", status="pending")
    assert office.deliver().unsent == 0
    assert office.statuses()["bad:1"] is NoticeStatus.SENT


def test_a_damaged_owner_costs_the_notices_of_its_team(office: Office, tmp_path: Path) -> None:
    office.employ("ops")
    office.break_link("ours")
    office.break_link("theirs", owner="ops")
    spoil(tmp_path, "owners", "ops")
    assert [notice.transition_id for notice in due_notices(office.store, now=office.clock.now())] == ["ours:1"]
    assert office.deliver() == DeliveryReport(sent=1, waiting=1)


def test_a_mute_that_is_over_is_looked_through_again_until_its_links_can_be_read(
    office: Office, tmp_path: Path
) -> None:
    office.break_link("bad")
    ends = office.clock.now() + timedelta(days=1)
    mute(office.store, "host:docs.example.com", until=ends.isoformat(), reason="known", by=None, now=office.clock.now())
    assert office.deliver() == DeliveryReport(muted=1)
    office.clock.advance(timedelta(days=2))
    spoil(tmp_path, "links", "bad")
    damage = Damage()
    lift_mutes(office.store, now=office.clock.now(), damaged=damage)
    assert [error.record for error in damage.records] == ["links: bad"]
    spoil(tmp_path, "links", "bad", state="broken")
    assert office.deliver() == DeliveryReport(sent=1)


# health


def look(office: Office, surveyor: Surveyor | None = None) -> dict[str, tuple[Severity, str]]:
    findings = watch_health(office.store, None, clock=office.clock, surveyor=surveyor)
    return {f.subject: (f.severity, f.detail) for f in findings if f.code == "record_damaged"}


def test_health_names_what_is_damaged_until_it_is_mended(office: Office, tmp_path: Path) -> None:
    for name in ("a", "bad"):
        office.break_link(name)
    surveyor = Surveyor()
    assert look(office, surveyor) == {}
    spoil(tmp_path, "links", "bad")
    spoil(tmp_path, "notices", "bad:1")
    found = look(office)
    assert set(found) == {"links: bad", "notices: bad:1"}
    assert all(severity is Severity.CRITICAL and "mend the row" in detail for severity, detail in found.values())
    office.clock.advance(timedelta(days=1))
    assert set(look(office, surveyor)) == set(found)
    spoil(tmp_path, "links", "bad", state="broken")
    spoil(tmp_path, "notices", "bad:1", status="pending")
    office.clock.advance(timedelta(hours=1))
    assert look(office, surveyor) == {}


def test_many_damaged_records_are_one_finding(office: Office, tmp_path: Path) -> None:
    for number in range(MOST_NAMED + 1):
        office.break_link(f"bad-{number}")
        spoil(tmp_path, "links", f"bad-{number}")
    [(subject, (_, detail))] = look(office).items()
    assert subject == "store"
    assert detail.startswith(f"{MOST_NAMED + 1} records cannot be read: links: bad-0, ")
    assert "and 1 more. The first: " in detail


# runs


def test_a_damaged_link_is_not_part_of_a_run_and_the_others_are_checked(engine: Engine, tmp_path: Path) -> None:
    spoil(tmp_path, "links", "link-00001")
    run = engine.observe()
    assert (run.state, run.expected) == (RunState.CLOSED, 3)
    assert set(engine.progress.ends.values()) == {"reachable"}


def test_one_that_is_damaged_after_the_dispatch_is_given_up_at_once(engine: Engine, tmp_path: Path) -> None:
    weekly = begin_week(engine.store, MONDAY, now=MONDAY)
    spoil(tmp_path, "links", "link-00000")
    run = engine.observe()
    assert (run.state, run.expected) == (RunState.CLOSED, 4)
    job = engine.store.get_job(weekly.run_id, "link-00000")
    assert job is not None
    assert (job.status, job.reason) == (JobStatus.ABANDONED, Reason.LINK_DAMAGED)
    assert sorted(engine.progress.ends.values()) == ["abandoned", "reachable", "reachable", "reachable"]


def test_a_damaged_job_costs_its_host_and_keeps_its_run_open(engine: Engine, tmp_path: Path) -> None:
    queue = MemoryQueue(engine.clock, max_receives=1)
    run = begin_on_queue(engine.store, queue, MONDAY, pace=PACE, now=MONDAY)
    spoil(tmp_path, "jobs", "link-00000")
    tick = partial(tick_on_queue, engine.parts(), queue, pace=PACE)
    for _ in range(10):
        engine.clock.advance(timedelta(minutes=4))
        received = queue.receive(limit=10)
        ended = asyncio.run(check_messages(engine.parts(), queue, [receipt.job for receipt in received]))
        for receipt, done in zip(received, ended, strict=True):
            if done:
                queue.acknowledge(receipt)
        asyncio.run(tick())
    assert [job.link_id for job in engine.store.observations()] == ["link-00002", "link-00003"]
    engine.clock.advance(timedelta(hours=6))
    asyncio.run(tick())
    spoil(tmp_path, "jobs", "link-00000", status="pending")
    asyncio.run(tick())
    closed = engine.store.get_run(run.run_id)
    assert closed is not None
    assert closed.state is RunState.CLOSED


# links that have no sequence left (decision 0047)


def test_a_link_without_a_next_sequence_is_found(office: Office) -> None:
    office.watch(guide=A)
    link = office.store.get_link("guide")
    assert link is not None
    office.store.save_link(replace(link, last_sequence=MAX_SEQUENCE), replaces=link)
    [(subject, (_, detail))] = look(office).items()
    assert subject == "links: guide"
    assert "Give 'linkwatch retire guide' and register its URL under another id." in detail


def test_a_job_whose_sequence_no_store_keeps_is_given_up_without_a_visit(engine: Engine, tmp_path: Path) -> None:
    begin_week(engine.store, MONDAY, now=MONDAY)
    spoil(tmp_path, "jobs", "link-00000", sequence=MAX_SEQUENCE + 1)
    run = engine.observe()
    assert (run.state, run.expected) == (RunState.CLOSED, 4)
    assert sorted(engine.progress.ends.values()) == ["abandoned", "reachable", "reachable", "reachable"]
    job = engine.store.get_job(run.run_id, "link-00000")
    assert job is not None
    assert (job.reason, engine.clock.now() - MONDAY < timedelta(minutes=1)) == (Reason.LINK_DAMAGED, True)
    spoil(tmp_path, "links", "link-00000", last_sequence=MAX_SEQUENCE)
    done = redrive(engine.store, [f"{run.run_id}:link-00000"], now=engine.clock.now())
    assert (done.jobs, [why for why in done.refused.values() if "has no sequence left" not in why]) == ([], [])
    assert len(list(engine.store.runs())) == 1


# registering


@pytest.fixture
def scanned(office: Office, tmp_path: Path) -> Store:
    office.employ("docs")
    register(office.store, Book(first=[A, B]))
    office.watch(by_hand="https://docs.example.com/d")
    spoil(tmp_path, "links", "by_hand")
    return office.store


def test_a_scan_leaves_a_damaged_link_as_it_is(scanned: Store) -> None:
    summary = register(scanned, Book(first=[A, B, "https://docs.example.com/d", "https://docs.example.com/new"]))
    assert [error.record for error in summary.damaged] == ["links: by_hand"]
    assert sorted(link.url for link in scanned.links(damaged=Damage())) == [A, B, "https://docs.example.com/new"]


def test_a_scan_that_does_not_meet_it_says_nothing(scanned: Store) -> None:
    assert register(scanned, Book(first=[A, B])).damaged == ()


def test_a_scan_is_refused_where_nobody_knows_what_it_means(scanned: Store, tmp_path: Path) -> None:
    with pytest.raises(DamagedRecord, match="by_hand"):
        register(scanned, Book(first=[A]), prune=True)
    spoil(tmp_path, "links", "by_hand", url=b"no text")
    with pytest.raises(DamagedRecord, match="by_hand"):
        register(scanned, Book(first=[A, "https://docs.example.com/new"]))
    assert sorted(link.url for link in scanned.links(damaged=Damage())) == [A, B]


def test_registering_by_hand_goes_on_unless_the_url_may_be_the_damaged_ones(scanned: Store) -> None:
    register_link(scanned, link_id="more", url="https://docs.example.com/more", owner="docs", now=MONDAY)
    with pytest.raises(DamagedRecord, match="by_hand"):
        register_link(scanned, link_id="again", url="https://docs.example.com/d", owner="docs", now=MONDAY)
