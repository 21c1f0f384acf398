"""What every store promises about host admission (SPEC 8)."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest

from linkwatch_pipeline.domain.hosts import Admitted, DeferralReason, Deferred, Departure, HostRecord
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, after, dispatched

HOST = "docs.example.com"
JOB = f"{RUN_ID}:guide"
NO_SKEW = timedelta(0)
COOLDOWN = timedelta(seconds=1)


def acquire(
    store: Store, token: str, *, now: datetime = MONDAY, job_id: str = JOB, skew: timedelta = NO_SKEW
) -> Admitted | Deferred:
    return store.acquire_host(HOST, token=token, job_id=job_id, now=now, skew=skew)


def release(store: Store, token: str, departure: Departure, *, host: str = HOST) -> HostRecord | None:
    return store.release_host(host, token=token, departure=departure, cooldown=COOLDOWN, chance=Random(1))


def answered(at: datetime) -> Departure:
    return Departure(at=at, answered=True)


class TestEntering:
    def test_an_unknown_host_admits_the_first_visitor(self, store: Store) -> None:
        assert store.get_host(HOST) is None
        entered = HostRecord(host=HOST, owner_token="w1", job_id=JOB, lease_until=after(seconds=60))
        assert acquire(store, "w1") == Admitted(record=entered)
        assert store.get_host(HOST) == entered

    @pytest.mark.parametrize(
        ("seconds", "skew_seconds", "until_seconds"),
        [
            (0, 0, 12),
            (30, 0, 42),
            (55, 0, 60),
            (59.999999, 0, 60),
            (60, 1, 61),
            (60.999999, 1, 61),
        ],
    )
    def test_a_held_host_defers_everybody_else(
        self, store: Store, seconds: float, skew_seconds: int, until_seconds: float
    ) -> None:
        acquire(store, "w1")
        before = store.get_host(HOST)
        answer = acquire(store, "w2", now=after(seconds=seconds), skew=timedelta(seconds=skew_seconds))
        assert answer == Deferred(until=after(seconds=until_seconds), reason=DeferralReason.HELD)
        assert store.get_host(HOST) == before

    def test_not_even_the_visitor_itself_enters_twice(self, store: Store) -> None:
        acquire(store, "w1")
        assert isinstance(acquire(store, "w1"), Deferred)

    @pytest.mark.parametrize(
        ("seconds", "skew_seconds", "admitted"),
        [(2.999999, 0, False), (3, 0, True), (3.5, 1, False), (4, 1, True)],
    )
    def test_after_a_visit_the_host_rests(
        self, store: Store, seconds: float, skew_seconds: int, admitted: bool
    ) -> None:
        acquire(store, "w1")
        release(store, "w1", answered(after(seconds=2)))
        skew = timedelta(seconds=skew_seconds)
        answer = acquire(store, "w2", now=after(seconds=seconds), skew=skew)
        if admitted:
            assert isinstance(answer, Admitted)
            assert answer.died_job_id is None
        else:
            assert answer == Deferred(until=after(seconds=3) + skew, reason=DeferralReason.COOLING)

    def test_hosts_do_not_wait_for_each_other(self, store: Store) -> None:
        acquire(store, "w1")
        other = store.acquire_host("other.example.com", token="w2", job_id="x", now=MONDAY, skew=NO_SKEW)
        assert isinstance(other, Admitted)


class TestLeaving:
    def test_the_visitor_leaves_a_host_that_rests(self, store: Store) -> None:
        acquire(store, "w1")
        left = release(store, "w1", answered(after(seconds=2)))
        assert left == HostRecord(host=HOST, next_allowed_at=after(seconds=3)) == store.get_host(HOST)

    def test_nobody_else_can_let_it_out(self, store: Store) -> None:
        acquire(store, "w1")
        before = store.get_host(HOST)
        assert release(store, "w2", answered(after(seconds=2))) is None
        assert release(store, "w1", answered(after(seconds=2)), host="unknown.example.com") is None
        assert store.get_host(HOST) == before

    def test_a_visitor_that_was_taken_over_changes_nothing(self, store: Store) -> None:
        acquire(store, "w1")
        acquire(store, "w2", now=after(seconds=60))
        before = store.get_host(HOST)
        assert release(store, "w1", answered(after(seconds=61))) is None
        assert store.get_host(HOST) == before

    def test_leaving_twice_counts_once(self, store: Store) -> None:
        acquire(store, "w1")
        first = release(store, "w1", answered(after(seconds=2)))
        assert release(store, "w1", answered(after(seconds=9))) is None
        assert store.get_host(HOST) == first

    def test_a_host_that_asks_for_a_pause_gets_it_and_remembers_how_often_it_asked(self, store: Store) -> None:
        levels = []
        now = MONDAY
        for _ in range(3):
            acquire(store, "w", now=now)
            asked = Departure(at=now, answered=True, asked_to_pause=True, retry_after=timedelta(seconds=30))
            left = release(store, "w", asked)
            assert left is not None
            assert left.next_allowed_at == now + timedelta(seconds=30)
            levels.append(left.backoff_level)
            now += timedelta(seconds=30)
        acquire(store, "w", now=now)
        other_answer = release(store, "w", answered(now))
        assert levels == [1, 2, 3]
        assert other_answer is not None
        assert other_answer.backoff_level == 0

    def test_without_a_usable_wait_the_pause_is_drawn(self, store: Store) -> None:
        acquire(store, "w1")
        left = release(store, "w1", Departure(at=MONDAY, answered=True, asked_to_pause=True))
        assert left is not None
        assert left.next_allowed_at == MONDAY + timedelta(seconds=30) * Random(1).random()


class TestDeaths:
    def deaths(self, store: Store) -> int:
        job = store.get_job(RUN_ID, "guide")
        assert job is not None
        return job.deaths

    @pytest.fixture(autouse=True)
    def run(self, store: Store) -> None:
        store.save_link(a_link(), replaces=None)
        dispatched(store, [a_link()])

    def test_who_takes_over_an_expired_lease_counts_a_death_of_its_job(self, store: Store) -> None:
        acquire(store, "w1")
        answer = acquire(store, "w2", now=after(seconds=60), job_id=f"{RUN_ID}:other")
        assert isinstance(answer, Admitted)
        assert (answer.died_job_id, self.deaths(store)) == (JOB, 1)

    def test_a_hop_to_another_host_counts_for_the_job_too(self, store: Store) -> None:
        store.acquire_host("hop.example.com", token="w1", job_id=JOB, now=MONDAY, skew=NO_SKEW)
        store.acquire_host("hop.example.com", token="w2", job_id="7:tour", now=after(seconds=60), skew=NO_SKEW)
        assert self.deaths(store) == 1

    def test_the_same_job_can_die_again(self, store: Store) -> None:
        for visit in range(4):
            acquire(store, f"w{visit}", now=after(minutes=visit))
        assert self.deaths(store) == 3

    def test_a_visitor_that_left_did_not_die(self, store: Store) -> None:
        acquire(store, "w1")
        release(store, "w1", answered(after(seconds=2)))
        acquire(store, "w2", now=after(seconds=90))
        assert self.deaths(store) == 0

    def test_being_deferred_counts_nothing(self, store: Store) -> None:
        acquire(store, "w1")
        acquire(store, "w2", now=after(seconds=59))
        assert self.deaths(store) == 0

    def test_a_job_that_ended_meanwhile_is_not_counted(self, store: Store) -> None:
        acquire(store, "w1")
        job = store.get_job(RUN_ID, "guide")
        assert job is not None
        store.end_job(job, status=JobStatus.EXPIRED, reason=Reason.STALLED)
        acquire(store, "w2", now=after(seconds=60))
        assert self.deaths(store) == 0

    @pytest.mark.parametrize("job_id", ["7:guide", f"{RUN_ID}:unknown", "2020-01-06T09:00:00Z:guide"])
    def test_a_hand_check_and_a_job_that_is_not_stored_die_without_a_trace(self, store: Store, job_id: str) -> None:
        acquire(store, "w1", job_id=job_id)
        answer = acquire(store, "w2", now=after(seconds=60))
        assert isinstance(answer, Admitted)
        assert (answer.died_job_id, self.deaths(store)) == (job_id, 0)


class TestVoidingLeases:
    def test_only_leases_whose_token_begins_so_end_and_nobody_died(self, store: Store) -> None:
        store.save_link(a_link(), replaces=None)
        dispatched(store, [a_link()])
        for host, token in [("a", "home-1/x"), ("b", "home-1/y"), ("c", "home-10/x"), ("d", "HOME-1/x"), ("e", "x")]:
            store.acquire_host(host, token=token, job_id=JOB, now=MONDAY, skew=NO_SKEW)
        store.acquire_host("f", token="home-1/z", job_id=JOB, now=MONDAY, skew=NO_SKEW)
        release(store, "home-1/z", answered(MONDAY), host="f")
        held_by_others = [store.get_host(host) for host in "cdef"]
        assert store.void_leases(token_prefix="home-1/", now=after(seconds=5), cooldown=COOLDOWN) == 2
        for host in "ab":
            assert store.get_host(host) == HostRecord(host=host, next_allowed_at=after(seconds=6))
        assert [store.get_host(host) for host in "cdef"] == held_by_others
        job = store.get_job(RUN_ID, "guide")
        assert job is not None
        assert job.deaths == 0
        assert store.void_leases(token_prefix="home-1/", now=after(seconds=5), cooldown=COOLDOWN) == 0

    def test_a_prefix_is_no_pattern(self, store: Store) -> None:
        acquire(store, "home_1/x")
        for pattern in ("%", "home%", "home?", "*", "h_me", "home-"):
            assert store.void_leases(token_prefix=pattern, now=MONDAY, cooldown=COOLDOWN) == 0

    def test_a_backoff_outlives_it(self, store: Store) -> None:
        acquire(store, "w1")
        release(store, "w1", Departure(at=MONDAY, answered=True, asked_to_pause=True, retry_after=timedelta(seconds=9)))
        acquire(store, "home-1/x", now=after(seconds=9))
        store.void_leases(token_prefix="home-1/", now=after(seconds=10), cooldown=COOLDOWN)
        record = store.get_host(HOST)
        assert record is not None
        assert record.backoff_level == 1
