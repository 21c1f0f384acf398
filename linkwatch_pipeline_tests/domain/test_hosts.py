"""One visitor at a time, a pause after each, and longer pauses when the host asks."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.hosts import (
    BACKOFF_BASE,
    BACKOFF_CEILING,
    BACKOFF_FLOOR,
    COOLDOWN,
    HELD_RECHECK,
    LEASE_FOR,
    LONGEST_DEFERRAL,
    Admitted,
    DeferralReason,
    Deferred,
    Departure,
    HostRecord,
    admit,
    backoff,
    leave,
)
from linkwatch_pipeline_tests.builders import MONDAY, after

NEVER_VISITED = HostRecord(host="docs.example.com")
SECONDS = st.integers(-2_000, 2_000).map(lambda n: MONDAY + timedelta(seconds=n))


class Always:
    """Chance that always says the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def visited() -> HostRecord:
    """The host with a visitor since MONDAY."""
    entered = admit(NEVER_VISITED, token="t1", job_id="job-1", now=MONDAY)
    assert isinstance(entered, Admitted)
    return entered.record


def left(record: HostRecord, *, at_s: float = 3, chance: float = 0.5, **how: Any) -> HostRecord:
    departure = Departure(at=after(seconds=at_s), **{"answered": True, **how})
    return leave(record, departure, cooldown=COOLDOWN, chance=Always(chance))


def test_an_unknown_host_admits_and_names_its_visitor() -> None:
    record = visited()
    assert (record.owner_token, record.job_id, record.lease_until) == ("t1", "job-1", MONDAY + LEASE_FOR)


def test_a_second_visitor_looks_again_soon() -> None:
    answer = admit(visited(), token="t2", job_id="job-2", now=after(seconds=5))
    assert answer == Deferred(until=after(seconds=5) + HELD_RECHECK, reason=DeferralReason.HELD)


def test_near_its_end_a_lease_says_exactly_when() -> None:
    answer = admit(visited(), token="t2", job_id="job-2", now=after(seconds=55))
    assert answer == Deferred(until=MONDAY + LEASE_FOR, reason=DeferralReason.HELD)


def test_an_expired_lease_is_taken_over_and_its_job_named() -> None:
    answer = admit(visited(), token="t2", job_id="job-2", now=MONDAY + LEASE_FOR)
    assert isinstance(answer, Admitted)
    assert (answer.died_job_id, answer.record.owner_token, answer.record.job_id) == ("job-1", "t2", "job-2")


def test_who_left_properly_did_not_die() -> None:
    answer = admit(left(visited()), token="t2", job_id="job-2", now=after(minutes=5))
    assert isinstance(answer, Admitted)
    assert answer.died_job_id is None


def test_after_a_visit_the_host_cools_down() -> None:
    record = left(visited(), at_s=3)
    assert (record.owner_token, record.job_id, record.lease_until) == (None, None, None)
    assert admit(record, token="t2", job_id="j", now=after(seconds=3.9)) == Deferred(
        until=after(seconds=4), reason=DeferralReason.COOLING
    )
    assert isinstance(admit(record, token="t2", job_id="j", now=after(seconds=4)), Admitted)


@given(now=SECONDS, lease=st.none() | SECONDS, allowed=st.none() | SECONDS, skew_s=st.integers(0, 5))
def test_a_visitor_enters_only_when_both_times_are_past_and_never_waits_too_long(
    now: datetime, lease: datetime | None, allowed: datetime | None, skew_s: int
) -> None:
    record = replace(
        NEVER_VISITED,
        owner_token="t1" if lease is not None else None,
        job_id="job-1" if lease is not None else None,
        lease_until=lease,
        next_allowed_at=allowed,
    )
    skew = timedelta(seconds=skew_s)
    answer = admit(record, token="t2", job_id="job-2", now=now, skew=skew)
    free = all(at is None or at + skew <= now for at in (lease, allowed))
    assert isinstance(answer, Admitted) is free
    if isinstance(answer, Deferred):
        assert now < answer.until <= now + LONGEST_DEFERRAL


@pytest.mark.parametrize(
    ("how", "pause_s", "level"),
    [
        ({}, 1, 0),
        ({"answered": False}, 1, 2),  # no answer says nothing about the host's wish
        ({"asked_to_pause": True, "retry_after": timedelta(seconds=300)}, 300, 3),
        ({"asked_to_pause": True, "retry_after": timedelta(seconds=1)}, 1, 3),
        ({"asked_to_pause": True}, 60, 3),  # 30 s x 2^2 x 0.5
    ],
)
def test_how_a_visit_ended_decides_the_pause_and_the_backoff(how: dict[str, Any], pause_s: int, level: int) -> None:
    record = left(replace(visited(), backoff_level=2), at_s=10, **how)
    assert record.next_allowed_at == after(seconds=10 + pause_s)
    assert record.backoff_level == level


def test_a_pause_is_never_shortened_by_a_later_visit() -> None:
    paused = replace(visited(), next_allowed_at=after(minutes=10))
    assert left(paused, at_s=5).next_allowed_at == after(minutes=10)


def test_a_longer_cooldown_goes_before_a_shorter_retry_after() -> None:
    departure = Departure(at=MONDAY, answered=True, asked_to_pause=True, retry_after=timedelta(seconds=2))
    record = leave(visited(), departure, cooldown=timedelta(seconds=7), chance=Always(0))
    assert record.next_allowed_at == after(seconds=7)


@given(st.integers(0, 10_000), st.integers())
def test_a_backoff_is_jittered_within_its_bounds(level: int, seed: int) -> None:
    wait = backoff(level, random.Random(seed))
    assert BACKOFF_FLOOR <= wait <= min(max(BACKOFF_BASE * 2 ** min(level, 20), BACKOFF_FLOOR), BACKOFF_CEILING)


@pytest.mark.parametrize(("level", "seconds"), [(0, 15), (1, 30), (3, 120), (5, 480), (6, 900), (60, 900)])
def test_a_backoff_doubles_until_its_ceiling(level: int, seconds: int) -> None:
    assert backoff(level, Always(0.5)) == timedelta(seconds=seconds)


def test_a_backoff_never_falls_below_its_floor() -> None:
    assert backoff(0, Always(0.0)) == BACKOFF_FLOOR
