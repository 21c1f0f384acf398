"""One look at linkwatch itself: what it reads, what it records, what it publishes, and what it does not read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import DeadLettersElsewhere, DeliveryFailure, InvalidInput
from linkwatch_pipeline.domain.health_findings import Severity
from linkwatch_pipeline.domain.runs import RunState, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.health_history import Mishap, past_trouble
from linkwatch_pipeline.use_cases.mute import mute
from linkwatch_pipeline.use_cases.review_week import latest_week
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, a_run, after, an_observation, dispatched
from linkwatch_pipeline_tests.use_cases.office import Office, refusal
from linkwatch_pipeline_tests.virtual_clock import VirtualClock


class Numbers(dict[str, float]):
    """`ports.Metrics` that keeps the latest of each."""

    def put(self, name: str, value: float, *, unit: str = "Count", at: datetime) -> None:
        self[name] = value


class CountingStore:
    """A store that counts the calls of each method."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.store, name)


@pytest.fixture
def office() -> Iterator[Office]:
    store = SqliteStore.open(Path(":memory:"))
    yield Office(store, breaker=BreakerRules(is_on=False))
    store.close()


def look(office: Office, **how: Any) -> list[tuple[str, str]]:
    found = watch_health(office.store, Numbers(), clock=office.clock, breaker=office.breaker, **how)
    return [(finding.code, finding.subject) for finding in found]


def until(office: Office, moment: datetime) -> None:
    office.clock.advance(moment - office.clock.now())


def test_weeks_that_nobody_ran_are_recorded_once_and_shown_for_five_weeks(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    office.run({"guide": 200})
    until(office, MONDAY + 3 * WEEK + timedelta(hours=1))
    office.run({"guide": 200}, run=a_run(MONDAY + 3 * WEEK))
    gaps = [weekly_run_id(MONDAY + n * WEEK) for n in (1, 2)]
    for _ in range(2):
        assert look(office) == [("week_missed", gap) for gap in gaps]
    recorded = [run for run in office.store.runs() if run.state is RunState.MISSED]
    assert [(run.run_id, run.closed_at) for run in recorded] == [(gap, office.clock.now()) for gap in gaps]
    trouble = list(past_trouble(office.store, now=office.clock.now()))
    assert [t.run_id for t in trouble if t.what is Mishap.MISSED] == gaps
    until(office, MONDAY + 6 * WEEK)
    assert ("week_missed", gaps[0]) not in look(office)
    assert gaps[0] in [trouble.run_id for trouble in past_trouble(office.store, now=office.clock.now())]


def test_the_next_run_records_the_weeks_before_it(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    office.run({"guide": 200})
    until(office, MONDAY + 3 * WEEK + timedelta(minutes=1))
    start_week(office.store, MONDAY + 3 * WEEK, now=office.clock.now())
    assert [run.state.value for run in office.store.runs()] == ["closed", "missed", "missed", "dispatching"]


def test_where_it_may_not_write_it_finds_the_same_and_writes_nothing(office: Office) -> None:
    office.employ()
    office.watch(guide="https://docs.example.com/guide")
    office.run({"guide": 404})
    until(office, MONDAY + WEEK - timedelta(days=1))
    before = list(office.store.runs()), list(office.store.notices())
    assert look(office, only_reads=True) == [("run_unreleased", RUN_ID)]
    assert (list(office.store.runs()), list(office.store.notices())) == before
    until(office, MONDAY + 2 * WEEK)
    assert ("week_missed", weekly_run_id(MONDAY + WEEK)) in look(office, only_reads=True)
    assert (list(office.store.runs()), list(office.store.notices())) == before
    assert ("run_unreleased", RUN_ID) not in look(office)
    assert len(list(office.store.runs())) == 2


def test_a_week_before_anything_was_watched_and_the_running_week_are_not_missed(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")  # a day before MONDAY
    until(office, MONDAY + timedelta(days=6, hours=23))
    assert look(office) == [("run_missing", RUN_ID)]
    assert list(office.store.runs()) == []
    assert start_week(office.store, MONDAY, now=office.clock.now()).state is RunState.DISPATCHING


def test_weeks_missed_by_a_clock_that_was_ahead_are_run_when_their_time_comes(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    now = office.clock.now()
    until(office, MONDAY + 3 * WEEK)
    assert ("week_missed", RUN_ID) in look(office)
    office.clock = VirtualClock(now)  # somebody sets the clock right
    assert look(office) == [("run_missing", RUN_ID)]
    assert list(past_trouble(office.store, now=now)) == []
    assert latest_week(office.store, now=now) is None
    for week in (MONDAY, MONDAY + WEEK):
        until(office, week + timedelta(hours=1))
        assert start_week(office.store, week, now=office.clock.now()).state is RunState.DISPATCHING
    with pytest.raises(InvalidInput, match="has not begun"):
        start_week(office.store, MONDAY + 2 * WEEK, now=office.clock.now())


def test_a_late_run_stays_in_the_history(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    office.run({"guide": 200})  # an hour late
    assert look(office) == []
    assert [(t.run_id, t.what) for t in past_trouble(office.store, now=office.clock.now())] == [(RUN_ID, "late")]


def test_an_open_run_that_nobody_works_on_is_found_stalled(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    link = office.store.get_link("guide")
    assert link is not None
    dispatched(office.store, [link])
    assert [code for code, _ in look(office)] == ["run_stalled", "run_late"]


def test_a_link_that_nothing_was_observed_of_for_two_weeks_is_named(office: Office) -> None:
    for name, since in (("old", after(days=-40)), ("seen", after(days=-40)), ("young", after(days=8))):
        office.store.save_link(a_link(name, active_since=since), replaces=None)
    office.store.save_link(a_link("gone", active_since=after(days=-40), retired_at=after(days=-1)), replaces=None)
    until(office, after(days=20))
    look_by_hand(office, "seen", at=after(days=19))
    assert ("links_unseen", "links") in look(office)
    look_by_hand(office, "old", at=after(days=20))
    assert ("links_unseen", "links") not in look(office)


def test_a_run_that_observed_a_link_clears_it_without_a_query(office: Office) -> None:
    office.store.save_link(a_link(active_since=after(days=-40)), replaces=None)
    office.run({"guide": None})  # even a timeout is an observation
    counting = CountingStore(office.store)
    found = watch_health(counting, Numbers(), clock=office.clock)
    assert "links_unseen" not in [finding.code for finding in found]
    assert counting.calls.count("observations") == 1  # of the newest run, which may hold a damaged one


def look_by_hand(office: Office, link_id: str, *, at: datetime) -> None:
    link = office.store.get_link(link_id)
    assert link is not None
    look = an_observation(link, 200, sequence=link.highest_sequence + 1, started_at=at, observed_at=at)
    office.store.record(look, default_confirm=1, now=at)


def test_all_links_are_read_once_a_day_and_all_notices_once_an_hour(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    office.run({"guide": 200})
    counting, surveyor = CountingStore(office.store), Surveyor()
    for _ in range(288):  # a day of looks
        watch_health(counting, Numbers(), clock=office.clock, surveyor=surveyor)
        office.clock.advance(timedelta(minutes=5))
    assert counting.calls.count("links") == 1
    assert counting.calls.count("owners") == 24
    watch_health(counting, Numbers(), clock=office.clock, surveyor=surveyor)
    assert counting.calls.count("links") == 2


def test_a_remembered_survey_knows_at_once_of_first_links_and_of_mutes(office: Office) -> None:
    surveyor = Surveyor()
    assert look(office, surveyor=surveyor) == []
    office.watch(guide="https://docs.example.com/guide")
    assert look(office, surveyor=surveyor) == [("run_missing", RUN_ID)]
    mute(office.store, "guide", until="2026-09-29", reason="known", by=None, now=office.clock.now())
    until(office, after(days=1))
    assert ("mute_expired", "link:guide") in look(office, surveyor=surveyor)


def test_the_numbers_say_what_piles_up(office: Office) -> None:
    office.employ()
    office.provider.answers = [refusal(DeliveryFailure.NOT_ACCEPTED), refusal(DeliveryFailure.UNKNOWN)]
    office.break_link("a")
    office.break_link("b")
    office.deliver()
    until(office, after(hours=1, minutes=3))
    numbers = Numbers()
    watch_health(office.store, numbers, clock=office.clock)
    assert numbers == {
        "RunLate": 1.0,  # nobody made this week's
        "CriticalFindings": 0,
        "Heartbeat": 1.0,
        "DeadLetters": 0,
        "NoticesWaiting": 2,
        "NoticesRetried": 2,
        "DeliveriesUnknown": 1,
        "OldestNoticeAge": 180.0,
        "LinksUnseen": 0,
    }


def test_everything_critical_is_counted_for_an_alarm_beside_that_of_late_runs(office: Office) -> None:
    office.employ()
    office.provider.answers = [refusal(DeliveryFailure.NOT_ACCEPTED)]
    office.break_link("a")
    office.deliver()
    until(office, after(hours=1, minutes=10))
    numbers = Numbers()
    found = watch_health(office.store, numbers, clock=office.clock)
    assert [finding.code for finding in found if finding.severity is Severity.CRITICAL] == [
        "run_missing",
        "notice_overdue",
    ]
    assert (numbers["RunLate"], numbers["CriticalFindings"]) == (1, 1)


def test_a_run_written_by_a_clock_that_is_ahead_is_found(office: Office) -> None:
    office.watch(guide="https://docs.example.com/guide")
    office.store.create_run(replace(a_run(), started_at=after(hours=1, minutes=5)))
    assert ("clock_skew", RUN_ID) in look(office)


class _Unguarded(MemoryQueue):
    """A queue that never gives a message up."""

    def verify(self) -> None:
        raise DeadLettersElsewhere("the work queue has no redrive policy. Give it one.")


def test_a_queue_that_is_not_as_it_has_to_be_is_critical(office: Office) -> None:
    assert look(office, queue=MemoryQueue(office.clock)) == []
    for only_reads in (False, True):
        queue = _Unguarded(office.clock)
        (found,) = watch_health(office.store, None, clock=office.clock, queue=queue, only_reads=only_reads)
        assert (found.code, found.subject, found.severity) == ("queue_broken", "queue", Severity.CRITICAL)
        assert found.detail.endswith("the work queue has no redrive policy. Give it one.")
