"""When a run's notices go out: at its close or its deadline, unless it is suspect; then a person decides."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.metrics.local import LocalMetrics
from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, NotFound
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.notices import CLAIM_FOR, NoticeStatus
from linkwatch_pipeline.domain.runs import Ruling, RulingKind, RunState
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import DeliveryReport
from linkwatch_pipeline.use_cases.release import discard_run, release_notices, release_run
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.builders import MONDAY, RETRY_ID, RUN_ID, a_run, after
from linkwatch_pipeline_tests.use_cases.office import Office

SITES = {f"link-{n}": f"https://host-{n}.example.com/" for n in range(8)}


@pytest.fixture
def early(office: Office) -> Office:
    """Five past nine on MONDAY, with eight links on eight hosts."""
    office.clock.start = after(minutes=5) - (office.clock.now() - office.clock.start)
    office.watch(**SITES)
    return office


def suspect(office: Office) -> str:
    """A run in which every link breaks."""
    return office.run(dict.fromkeys(SITES, 404))


def ruling_of(office: Office, run_id: str = RUN_ID) -> Ruling | None:
    run = office.store.get_run(run_id)
    assert run is not None
    return run.ruling


def test_a_runs_notices_wait_until_it_is_closed(early: Office) -> None:
    run_id = early.run({"link-0": 404}, close=False)
    assert early.notice("link-0:1").release_at is None
    assert early.deliver() == DeliveryReport(waiting=1)
    early.close(run_id)
    assert early.deliver() == DeliveryReport(sent=1)
    assert ruling_of(early) == Ruling(kind=RulingKind.RELEASED, at=early.clock.now())
    assert early.notice("link-0:1").release_at == early.clock.now()


def test_at_half_past_nine_they_go_even_if_the_run_goes_on(early: Office) -> None:
    early.run({"link-0": 404}, close=False)
    early.clock.advance(timedelta(minutes=24, seconds=59))
    assert early.deliver() == DeliveryReport(waiting=1)
    early.clock.advance(timedelta(seconds=1))
    assert early.deliver() == DeliveryReport(sent=1)
    assert ruling_of(early) is None  # the rest of the run may yet look suspect


def test_a_run_that_was_begun_late_has_half_an_hour_too(early: Office) -> None:
    early.clock.advance(timedelta(hours=5))
    early.run({"link-0": 404}, run=a_run(started_at=early.clock.now()), close=False)
    assert early.deliver() == DeliveryReport(waiting=1)
    early.clock.advance(timedelta(minutes=30))
    assert early.deliver() == DeliveryReport(sent=1)


def test_a_retry_run_has_its_own_half_hour(early: Office) -> None:
    late = a_run(run_id=RETRY_ID, retry_of=RUN_ID, started_at=after(hours=3))
    early.clock.advance(timedelta(hours=3))
    early.run({"link-0": 404}, run=late, close=False)
    assert early.deliver() == DeliveryReport(waiting=1)
    early.clock.advance(timedelta(minutes=30))
    assert early.deliver() == DeliveryReport(sent=1)


def test_a_check_by_hand_waits_for_nobody(early: Office) -> None:
    early.break_link("guide")
    assert early.deliver() == DeliveryReport(sent=1)


def test_without_the_breaker_single_mails_go_at_once_and_digests_at_the_close(early: Office) -> None:
    early.breaker = BreakerRules(is_on=False)
    run_id = early.run({"link-0": 404}, close=False)
    assert early.deliver() == DeliveryReport(sent=1)
    early.employ(delivery=Delivery.DIGEST)
    early.run({"link-1": 404}, close=False)
    assert early.deliver() == DeliveryReport(waiting=1)
    early.close(run_id)
    assert early.deliver() == DeliveryReport(sent=1)


def test_without_the_breaker_no_run_is_suspect(early: Office) -> None:
    early.breaker = BreakerRules(is_on=False)
    suspect(early)
    assert early.deliver() == DeliveryReport(sent=8)


def test_a_suspect_run_is_held_and_says_why(early: Office) -> None:
    suspect(early)
    assert early.deliver() == DeliveryReport(held=8)
    ruling = ruling_of(early)
    assert ruling is not None
    assert (ruling.kind, ruling.by) == (RulingKind.HELD, None)
    assert ruling.why == "8 of 8 hosts broke anew or gave no certain answer, more than 5"
    assert set(early.statuses().values()) == {NoticeStatus.HELD}
    early.clock.advance(timedelta(days=300))
    assert early.deliver() == DeliveryReport(held=8)  # nothing is ever released by itself
    assert early.provider.accepted == []


def test_a_checker_that_lost_its_network_makes_a_suspect_run_without_any_notice(early: Office) -> None:
    early.run(dict.fromkeys(SITES, None))
    release_notices(early.store, early.breaker, now=early.clock.now(), damaged=Damage())
    ruling = ruling_of(early)
    assert ruling is not None
    assert ruling.kind is RulingKind.HELD
    assert early.statuses() == {}


def test_three_hundred_links_of_one_host_hold_nothing(early: Office) -> None:
    links = {f"page-{n:03}": f"https://big.example.com/{n}" for n in range(300)}
    early.watch(**links)
    early.run(dict.fromkeys(links, 404) | dict.fromkeys(SITES, 200))
    assert early.deliver() == DeliveryReport(sent=300)


def test_canaries_hold_a_run(early: Office) -> None:
    early.breaker = BreakerRules(canaries=("link-0", "link-1", "link-2", "not-a-link"))
    early.run({"link-0": None, "link-1": None, "link-2": 200, "link-3": 404})
    assert early.deliver() == DeliveryReport(held=1)


def test_hosts_that_never_give_an_answer_do_not_hold_every_run(early: Office) -> None:
    early.run(dict.fromkeys(SITES, None))
    release_notices(early.store, early.breaker, now=early.clock.now(), damaged=Damage())
    release_run(early.store, RUN_ID, by="ops", now=early.clock.now())  # a person says that this is how they are
    early.clock.advance(timedelta(days=7))
    second = early.run(dict.fromkeys(SITES, None), run=a_run(after(days=7)))
    release_notices(early.store, early.breaker, now=early.clock.now(), damaged=Damage())
    ruling = ruling_of(early, second)
    assert ruling is not None
    assert ruling.kind is RulingKind.RELEASED


def test_a_run_may_turn_out_suspect_after_half_past_nine(early: Office) -> None:
    early.run({"link-0": 404}, close=False)
    early.clock.advance(timedelta(minutes=30))
    assert early.deliver() == DeliveryReport(sent=1)
    early.run({f"link-{n}": 404 for n in range(1, 7)}, close=False)
    assert early.deliver() == DeliveryReport(held=6)


def test_a_notice_that_was_released_before_its_run_became_suspect_is_held_back_too(early: Office) -> None:
    early.run({"link-0": 404}, close=False)
    early.clock.advance(timedelta(minutes=30))
    release_notices(early.store, early.breaker, now=early.clock.now(), damaged=Damage())
    early.store.claim_notice("link-0:1", by="dead", now=early.clock.now())
    early.run({f"link-{n}": 404 for n in range(1, 7)}, close=False)
    assert early.deliver() == DeliveryReport(held=6, waiting=1)
    early.clock.advance(CLAIM_FOR)
    assert early.deliver() == DeliveryReport(held=7)


def test_a_person_releases_a_held_run(early: Office) -> None:
    suspect(early)
    early.deliver()
    early.clock.advance(timedelta(days=1))
    decided = release_run(early.store, RUN_ID, by="ops", now=early.clock.now())
    assert decided.notices == 8
    assert decided.run.ruling == Ruling(kind=RulingKind.RELEASED, at=early.clock.now(), by="ops")
    assert {notice.release_at for notice in early.store.notices()} == {early.clock.now()}
    assert early.deliver() == DeliveryReport(sent=8)


def test_a_person_discards_a_held_run(early: Office) -> None:
    suspect(early)
    early.deliver()
    decided = discard_run(early.store, RUN_ID, by=None, why="our proxy was down", now=early.clock.now())
    assert (decided.notices, decided.run.ruling and decided.run.ruling.why) == (8, "our proxy was down")
    assert set(early.statuses().values()) == {NoticeStatus.DISCARDED}
    assert early.deliver() == DeliveryReport()
    early.see("link-0", 200)  # a recovery whose break was discarded
    assert early.deliver() == DeliveryReport(discarded=1)
    assert early.provider.accepted == []


def test_a_decision_may_be_repeated_and_not_reversed(early: Office) -> None:
    suspect(early)
    early.deliver()
    discard_run(early.store, RUN_ID, by=None, why=None, now=early.clock.now())
    assert discard_run(early.store, RUN_ID, by=None, why=None, now=early.clock.now()).notices == 0
    with pytest.raises(ConflictingContent, match="are discarded"):
        release_run(early.store, RUN_ID, by=None, now=early.clock.now())


def test_only_a_held_run_can_be_decided_about(early: Office) -> None:
    early.run({"link-0": 404}, close=False)
    with pytest.raises(ConflictingContent, match="not ruled on yet"):
        release_run(early.store, RUN_ID, by=None, now=early.clock.now())
    with pytest.raises(NotFound, match="no run is held"):
        release_run(early.store, "2020-01-06T09:00:00Z", by=None, now=early.clock.now())
    with pytest.raises(InvalidInput, match="reason"):
        discard_run(early.store, RUN_ID, by=None, why=" ", now=early.clock.now())


@pytest.mark.parametrize("kind", [RulingKind.RELEASED, RulingKind.DISCARDED])
def test_whoever_looks_next_finishes_a_decision_that_a_crash_cut_short(early: Office, kind: RulingKind) -> None:
    suspect(early)
    early.deliver()
    ruling = Ruling(kind=kind, at=early.clock.now(), by="ops")
    assert early.store.rule_on_run(RUN_ID, ruling, replaces=ruling_of(early))  # and then the process was gone
    expected = DeliveryReport(sent=8) if kind is RulingKind.RELEASED else DeliveryReport()
    assert early.deliver() == expected
    assert NoticeStatus.HELD not in early.statuses().values()


def test_a_missed_week_is_nothing_to_rule_on(early: Office) -> None:
    early.store.create_run(a_run(MONDAY, state=RunState.MISSED, closed_at=MONDAY))
    release_notices(early.store, early.breaker, now=early.clock.now(), damaged=Damage())
    ruling = ruling_of(early)
    assert ruling is not None
    assert ruling.kind is RulingKind.RELEASED


def test_who_only_reads_names_a_suspect_run_and_leaves_the_ruling_to_others(early: Office, tmp_path: Path) -> None:
    suspect(early)
    metrics = LocalMetrics(tmp_path / "metrics.jsonl")
    findings = watch_health(early.store, metrics, clock=early.clock, only_reads=True)
    assert ruling_of(early) is None
    assert early.notice("link-0:1").status is NoticeStatus.PENDING
    held = [finding for finding in findings if finding.subject == RUN_ID]
    assert held == [f for f in watch_health(early.store, metrics, clock=early.clock) if f.subject == RUN_ID] != []
    ruling = ruling_of(early)
    assert ruling is not None
    assert ruling.kind is RulingKind.HELD
