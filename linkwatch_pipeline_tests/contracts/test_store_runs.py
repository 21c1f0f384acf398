"""What every store promises about runs, jobs and host chains (SPEC 7, ARCHITECTURE 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import NotFound
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import (
    HostChain,
    JobRecord,
    JobStatus,
    Ruling,
    RulingKind,
    Run,
    RunCounts,
    RunState,
    missed_run,
)
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import (
    MONDAY,
    RETRY_ID,
    RUN_ID,
    a_chain,
    a_job,
    a_link,
    a_run,
    after,
    an_observation,
    dispatched,
    linked,
)

HOST = "docs.example.com"
WEEKLY, RETRY = AllocationSlot.WEEKLY, AllocationSlot.RETRY


def links_of(store: Store, *names: str, host: str = HOST) -> list[Link]:
    links = [a_link(name, f"https://{host}/{name}") for name in names]
    for link in links:
        store.save_link(link, replaces=None)
    return links


def chain_of(store: Store, run_id: str = RUN_ID, host: str = HOST) -> HostChain:
    chain = store.get_chain(run_id, host)
    assert chain is not None
    return chain


def run_of(store: Store, run_id: str = RUN_ID) -> Run:
    run = store.get_run(run_id)
    assert run is not None
    return run


def job_of(store: Store, link_id: str, run_id: str = RUN_ID) -> JobRecord:
    job = store.get_job(run_id, link_id)
    assert job is not None
    return job


def allow_at(store: Store, seconds: float) -> None:
    """Let the host be visited and rest until so many seconds after MONDAY."""
    store.acquire_host(HOST, token="t", job_id="0:x", now=after(hours=-1), skew=timedelta(0))
    store.release_host(
        HOST,
        token="t",
        departure=Departure(at=after(seconds=seconds - 1), answered=True),
        cooldown=timedelta(seconds=1),
        chance=Random(0),
    )


class TestRuns:
    def test_every_field_comes_back(self, store: Store) -> None:
        full = a_run(
            started_at=after(seconds=2),
            state=RunState.CLOSED,
            expected=5,
            dispatched=5,
            dispatched_at=after(seconds=3),
            closed_at=after(minutes=9),
            cursor=HOST,
            retry_of="2026-09-21T09:00:00Z",
            totals=RunCounts(expected=5, by_end={"reachable": 4, "expired": 1}),
        )
        assert store.create_run(full) == full
        assert store.get_run(RUN_ID) == full

    def test_a_duplicate_trigger_is_the_same_run(self, store: Store) -> None:
        first = store.create_run(a_run(started_at=after(seconds=1)))
        again = store.create_run(a_run(started_at=after(hours=1), state=RunState.OPEN, expected=9))
        assert again == first == a_run(started_at=after(seconds=1))
        assert list(store.runs()) == [first]

    def test_a_week_missed_before_it_was_over_gives_way_to_its_run(self, store: Store) -> None:
        store.create_run(missed_run(MONDAY, after(days=20)))  # written by a clock that was ahead
        begun = a_run(started_at=after(minutes=1))
        assert store.create_run(begun) == begun
        assert (store.get_run(RUN_ID), list(store.runs(open_only=True))) == (begun, [begun])
        assert store.create_run(missed_run(MONDAY, after(days=20))) == begun
        assert store.finish_dispatch(RUN_ID, expected=0, at=after(minutes=2)).state is RunState.OPEN

    def test_a_week_that_is_over_stays_missed(self, store: Store) -> None:
        missed = store.create_run(missed_run(MONDAY, after(days=8)))
        assert store.create_run(a_run(started_at=after(days=7))) == missed
        assert store.create_run(missed_run(MONDAY, after(days=3))) == missed
        assert list(store.runs(open_only=True)) == []

    def test_they_come_in_time_order_and_those_that_are_over_can_be_left_out(self, store: Store) -> None:
        runs = [
            a_run(after(days=-14), state=RunState.MISSED),
            a_run(after(days=-7), state=RunState.CLOSED),
            a_run(state=RunState.OPEN),
            a_run(run_id=RETRY_ID, retry_of=RUN_ID),
            a_run(after(days=7)),
        ]
        for run in reversed(runs):
            store.create_run(run)
        assert list(store.runs()) == runs
        assert list(store.runs(open_only=True)) == runs[2:]

    def test_no_run_is_none(self, store: Store) -> None:
        assert store.get_run(RUN_ID) is None
        assert store.get_job(RUN_ID, "guide") is None
        assert store.get_chain(RUN_ID, HOST) is None
        assert list(store.jobs(RUN_ID)) == []
        assert list(store.chains(RUN_ID)) == []


class TestDispatchProgress:
    def test_it_goes_forward_and_never_back(self, store: Store) -> None:
        store.create_run(a_run())
        seen = []
        steps = [("b.example.com", 10), ("a.example.com", 4), ("b.example.com", 11), ("c.example.com", 12), ("d", 9)]
        for cursor, count in steps:
            store.save_dispatch_progress(RUN_ID, cursor=cursor, dispatched=count)
            run = store.get_run(RUN_ID)
            assert run is not None
            seen.append((run.cursor, run.dispatched))
        assert [cursor for cursor, _ in seen] == ["b.example.com"] * 3 + ["c.example.com", "d"]
        assert [count for _, count in seen] == [10, 10, 10, 12, 12]

    def test_it_is_not_saved_once_every_job_exists(self, store: Store) -> None:
        store.create_run(a_run())
        done = store.finish_dispatch(RUN_ID, expected=3, at=after(seconds=4))
        store.save_dispatch_progress(RUN_ID, cursor="z.example.com", dispatched=99)
        assert store.get_run(RUN_ID) == done

    def test_finishing_opens_the_run_once(self, store: Store) -> None:
        store.create_run(a_run())
        opened = store.finish_dispatch(RUN_ID, expected=3, at=after(seconds=4))
        assert opened == a_run(state=RunState.OPEN, expected=3, dispatched=3, dispatched_at=after(seconds=4))
        assert store.finish_dispatch(RUN_ID, expected=4, at=after(seconds=9)) == opened
        assert store.get_run(RUN_ID) == opened

    def test_finishing_never_reopens_a_closed_run(self, store: Store) -> None:
        store.create_run(a_run())
        closed = store.close_run(RUN_ID, totals=RunCounts(expected=0, by_end={}), at=after(hours=6))
        assert store.finish_dispatch(RUN_ID, expected=4, at=after(hours=7)) == closed

    def test_a_run_that_does_not_exist_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound, match=RUN_ID):
            store.finish_dispatch(RUN_ID, expected=0, at=MONDAY)
        with pytest.raises(NotFound, match=RUN_ID):
            store.close_run(RUN_ID, totals=RunCounts(expected=0, by_end={}), at=MONDAY)


class TestClosing:
    def test_the_totals_are_written_once(self, store: Store) -> None:
        store.create_run(a_run(state=RunState.OPEN, expected=2, dispatched=2))
        first = RunCounts(expected=2, by_end={"reachable": 1, "expired": 1})
        closed = store.close_run(RUN_ID, totals=first, at=after(hours=6))
        assert closed == a_run(state=RunState.CLOSED, expected=2, dispatched=2, totals=first, closed_at=after(hours=6))
        again = store.close_run(RUN_ID, totals=RunCounts(expected=9, by_end={}), at=after(hours=7))
        assert again == closed == store.get_run(RUN_ID)

    def test_a_missed_week_stays_missed(self, store: Store) -> None:
        missed = store.create_run(a_run(state=RunState.MISSED))
        assert store.close_run(RUN_ID, totals=RunCounts(expected=0, by_end={}), at=after(hours=6)) == missed


class TestAllocating:
    def test_a_new_link_begins_with_sequence_0(self, store: Store) -> None:
        (link,) = links_of(store, "guide")
        promised = Allocation(run_id=RUN_ID, sequence=0, host=HOST, config_version=1)
        assert store.allocate([link], WEEKLY, RUN_ID) == [promised]
        assert store.get_link("guide") == replace(link, allocations={WEEKLY: promised})

    def test_it_is_one_more_than_the_highest_applied_or_promised(self, store: Store) -> None:
        (link,) = links_of(store, "guide")
        store.record(an_observation(link, sequence=7), default_confirm=1, now=after(hours=1))
        assert [a.sequence for a in store.allocate([link], WEEKLY, RUN_ID) if a] == [8]
        assert [a.sequence for a in store.allocate([link], RETRY, RETRY_ID) if a] == [9]
        next_week = "2026-10-05T09:00:00Z"
        assert [a.sequence for a in store.allocate([link], WEEKLY, next_week) if a] == [10]

    def test_a_repeated_dispatch_gets_the_same_sequence(self, store: Store) -> None:
        links = links_of(store, "a", "b")
        first = store.allocate(links, WEEKLY, RUN_ID)
        store.allocate(links, RETRY, RETRY_ID)
        assert store.allocate(links, WEEKLY, RUN_ID) == first

    def test_another_runs_promise_in_the_slot_is_replaced(self, store: Store) -> None:
        (link,) = links_of(store, "guide")
        store.allocate([link], WEEKLY, "2026-09-21T09:00:00Z")
        (promised,) = store.allocate([link], WEEKLY, RUN_ID)
        stored = store.get_link("guide")
        assert promised is not None
        assert stored is not None
        assert (promised.sequence, stored.allocations) == (1, {WEEKLY: promised})

    @pytest.mark.parametrize(
        "change",
        [
            {"config_version": 2},
            {"url": f"https://{HOST}/moved", "config_version": 2},
            {"retired_at": after(seconds=1), "config_version": 2},
            {"retired_at": after(seconds=1)},
        ],
        ids=["configuration", "url", "retired and raised", "retired"],
    )
    def test_a_link_that_is_configured_otherwise_now_gets_none(self, store: Store, change: dict[str, Any]) -> None:
        changed, same = links_of(store, "a", "b")
        store.save_link(replace(changed, **change), replaces=changed)
        assert [a and a.sequence for a in store.allocate([changed, same], WEEKLY, RUN_ID)] == [None, 0]
        assert store.get_link("a") == replace(changed, **change)

    def test_a_promise_that_is_held_is_kept_though_the_link_changed(self, store: Store) -> None:
        (link,) = links_of(store, "guide")
        first = store.allocate([link], WEEKLY, RUN_ID)
        stored = store.get_link("guide")
        assert stored is not None
        store.save_link(replace(stored, config_version=2, marker="new"), replaces=stored)
        assert store.allocate([link], WEEKLY, RUN_ID) == first

    def test_only_the_configuration_has_to_be_as_it_was_read(self, store: Store) -> None:
        (link,) = links_of(store, "guide")
        store.record(an_observation(link, 404), default_confirm=1, now=after(hours=1))
        assert store.allocate([link], WEEKLY, RUN_ID) != [None]

    def test_a_link_that_is_not_there_gets_none(self, store: Store) -> None:
        assert store.allocate([a_link()], WEEKLY, RUN_ID) == [None]
        assert store.allocate([], WEEKLY, RUN_ID) == []


class TestJobsAndChains:
    def test_every_field_of_a_job_comes_back(self, store: Store) -> None:
        store.create_run(a_run())
        full = a_job(
            a_link(),
            next="tour",
            retry_of="2026-09-21T09:00:00Z:guide",
            sequence=9,
            status=JobStatus.DONE,
            deferrals=2,
            deaths=1,
            content_digest="d" * 64,
            outcome=Outcome.UNCERTAIN,
            reason=Reason.TLS_EXPIRED,
        )
        bare = a_job(a_link("tour"))
        store.put_jobs([full, bare])
        assert [store.get_job(RUN_ID, "guide"), store.get_job(RUN_ID, "tour")] == [full, bare]

    def test_every_field_of_a_chain_comes_back(self, store: Store) -> None:
        store.create_run(a_run())
        jobs = [a_job(a_link())]
        full = a_chain(
            jobs,
            counts={"reachable": 2, "cancelled": 1},
            resends=1,
            streak=2,
            first_observed_at=after(seconds=1),
            last_observed_at=after(seconds=2),
            planned_sent_at=after(seconds=3),
        )
        assert store.put_chain(full) is True
        assert store.get_chain(RUN_ID, HOST) == full
        assert list(store.chains(RUN_ID)) == [full]

    def test_a_job_that_is_there_stays_as_it_is(self, store: Store) -> None:
        store.create_run(a_run())
        first, second = a_job(a_link("a")), a_job(a_link("b"))
        store.put_jobs([first])
        store.put_jobs([replace(first, sequence=5), second])
        assert list(store.jobs(RUN_ID)) == [first, second]
        store.put_jobs([])

    def test_a_chain_that_is_there_stays_as_it_is(self, store: Store) -> None:
        store.create_run(a_run())
        chain = a_chain([a_job(a_link())])
        assert [store.put_chain(chain), store.put_chain(replace(chain, total=9))] == [True, False]
        assert store.get_chain(RUN_ID, HOST) == chain

    def test_they_come_in_host_and_link_order_and_from_one_run(self, store: Store) -> None:
        links = [*links_of(store, "z", "m", host="a.example.com"), *links_of(store, "b", "a", host="b.example.com")]
        dispatched(store, links)
        dispatched(store, links[:1], run=a_run(run_id=RETRY_ID, retry_of=RUN_ID))
        assert [job.link_id for job in store.jobs(RUN_ID)] == ["m", "z", "a", "b"]
        assert [job.link_id for job in store.jobs(RUN_ID, host="b.example.com")] == ["a", "b"]
        assert [chain.host for chain in store.chains(RUN_ID)] == ["a.example.com", "b.example.com"]
        assert [job.sequence for job in store.jobs(RETRY_ID)] == [1]
        assert list(store.jobs(RUN_ID, host="c.example.com")) == []

    def test_the_longest_chains_come_first_and_those_that_are_done_or_not_ready_can_be_left_out(
        self, store: Store
    ) -> None:
        names = {"c": "12", "a": "1", "d": "1", "b": "123"}
        links = {host: links_of(store, *(f"{host}{n}" for n in names[host]), host=f"{host}.example") for host in names}
        dispatched(store, [link for of_host in links.values() for link in of_host])
        dispatched(store, links["a"], run=a_run(run_id=RETRY_ID, retry_of=RUN_ID))
        assert _hosts(store.longest_chains(RUN_ID, limit=9)) == ["b", "c", "a", "d"]
        assert _hosts(store.longest_chains(RUN_ID, limit=2)) == ["b", "c"]
        assert store.longest_chains(RUN_ID, limit=1) == [chain_of(store, host="b.example")]
        store.end_job(job_of(store, "a1"), status=JobStatus.CANCELLED, reason=Reason.RETIRED)
        assert store.defer_head(job_of(store, "b1"), until=after(seconds=61), now=after(seconds=1))
        assert _hosts(store.longest_chains(RUN_ID, limit=9)) == ["b", "c", "d"]
        assert _hosts(store.longest_chains(RUN_ID, limit=9, ready_by=after(seconds=60))) == ["c", "d"]
        assert _hosts(store.longest_chains(RUN_ID, limit=9, ready_by=after(seconds=61))) == ["b", "c", "d"]
        assert store.longest_chains("2026-10-05T09:00:00Z", limit=9) == []


def _hosts(chains: Sequence[HostChain]) -> list[str]:
    return [chain.host.partition(".")[0] for chain in chains]


class TestEndingAJob:
    @pytest.mark.parametrize("status", [JobStatus.CANCELLED, JobStatus.EXPIRED, JobStatus.ABANDONED])
    def test_it_is_counted_and_the_chain_moves_on(self, store: Store, status: JobStatus) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        chain = store.end_job(jobs[0], status=status, reason=Reason.POISON)
        assert chain == replace(a_chain(jobs), head="b", remaining=1, counts={status.value: 1})
        assert chain == chain_of(store)
        assert job_of(store, "a") == replace(jobs[0], status=status, reason=Reason.POISON)

    def test_it_ends_only_once(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        chain = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        ended = job_of(store, "a")
        assert store.end_job(jobs[0], status=JobStatus.ABANDONED, reason=Reason.POISON) is None
        assert (chain_of(store), job_of(store, "a")) == (chain, ended)

    def test_a_done_job_stays_done(self, store: Store) -> None:
        links = links_of(store, "a", "b")
        jobs = dispatched(store, links)
        store.record(an_observation(links[0], job=jobs[0]), default_confirm=1, now=after(hours=1))
        before = (chain_of(store), job_of(store, "a"))
        assert store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED) is None
        assert (chain_of(store), job_of(store, "a")) == before

    def test_a_job_that_does_not_exist_is_not_pending(self, store: Store) -> None:
        assert store.end_job(a_job(a_link()), status=JobStatus.EXPIRED, reason=Reason.STALLED) is None

    def test_what_counts_is_the_stored_job_not_the_one_in_hand(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        stale = replace(jobs[0], next=None, deaths=9, sequence=99)
        chain = store.end_job(stale, status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert chain is not None
        assert chain.head == "b"
        assert job_of(store, "a") == replace(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)

    def test_the_next_head_is_ready_when_its_host_allows_it(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        allow_at(store, 40)
        chain = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert chain is not None
        assert chain.head_ready_at == after(seconds=40)

    def test_a_job_whose_chain_was_never_put_is_counted_too(self, store: Store) -> None:
        """A dispatch died between a host's jobs and its chain, and the run's six hours have passed."""
        jobs = linked([a_job(link) for link in links_of(store, "a", "b")])
        store.create_run(a_run())
        store.put_jobs(jobs)
        for job in jobs:
            assert store.end_job(job, status=JobStatus.EXPIRED, reason=Reason.STALLED) is not None
        chain = chain_of(store)
        assert (chain.head, chain.remaining, chain.total, chain.counts) == (None, 0, 2, {"expired": 2})


class TestSteppingAChain:
    def ended_behind_the_head(self, store: Store) -> list[JobRecord]:
        """Three jobs; the first is the head, the second has ended out of turn."""
        jobs = dispatched(store, links_of(store, "a", "b", "c"))
        store.end_job(jobs[1], status=JobStatus.CANCELLED, reason=Reason.RETIRED)
        store.end_job(jobs[0], status=JobStatus.CANCELLED, reason=Reason.RETIRED)
        return jobs

    def test_the_head_moves_past_a_terminal_job_and_counters_stay(self, store: Store) -> None:
        jobs = self.ended_behind_the_head(store)
        before = chain_of(store)
        assert before.head == "b"
        assert store.step_chain(jobs[1]) == replace(before, head="c") == chain_of(store)

    def test_a_job_that_is_not_the_head_any_more_moves_nothing(self, store: Store) -> None:
        jobs = self.ended_behind_the_head(store)
        before = chain_of(store)
        assert store.step_chain(jobs[0]) is None
        assert chain_of(store) == before

    def test_a_pending_head_stays(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        assert store.step_chain(jobs[0]) is None
        assert chain_of(store) == a_chain(jobs)

    def test_behind_the_last_job_the_head_is_empty(self, store: Store) -> None:
        jobs = self.ended_behind_the_head(store)
        store.step_chain(jobs[1])
        store.end_job(jobs[2], status=JobStatus.CANCELLED, reason=Reason.RETIRED)
        assert chain_of(store).head is None

    def test_the_new_head_is_ready_when_its_host_allows_it_and_was_not_sent_again(self, store: Store) -> None:
        jobs = self.ended_behind_the_head(store)
        store.resend_head(chain_of(store), now=after(seconds=5))
        allow_at(store, 40)
        stepped = store.step_chain(jobs[1])
        assert stepped is not None
        assert (stepped.head, stepped.head_ready_at, stepped.resends) == ("c", after(seconds=40), 0)


class TestDeferringTheHead:
    @pytest.mark.parametrize(("now_seconds", "mine"), [(0, True), (-2, True), (-2.001, False), (500, True)])
    def test_a_due_head_is_deferred_by_whoever_asks_first(self, store: Store, now_seconds: float, mine: bool) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        now, until = after(seconds=now_seconds), after(seconds=600)
        assert store.defer_head(jobs[0], until=until, now=now) is mine
        assert chain_of(store) == replace(a_chain(jobs), head_ready_at=until if mine else MONDAY)

    def test_the_second_copy_of_a_message_dies_out(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        answers = [store.defer_head(jobs[0], until=after(seconds=12), now=MONDAY) for _ in range(2)]
        assert answers == [True, False]

    def test_a_job_that_is_not_the_head_defers_nothing(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        assert store.defer_head(jobs[1], until=after(seconds=12), now=MONDAY) is False
        assert store.defer_head(replace(jobs[0], run_id=RETRY_ID), until=after(seconds=12), now=MONDAY) is False
        assert chain_of(store) == a_chain(jobs)


class TestCountingDeferrals:
    def test_a_pending_job_counts_them(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        assert [store.count_deferral(jobs[0]) for _ in range(3)] == [1, 2, 3]
        assert job_of(store, "a") == replace(jobs[0], deferrals=3)

    def test_a_job_that_ended_keeps_its_count(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        store.count_deferral(jobs[0])
        store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert store.count_deferral(jobs[0]) == 1
        assert job_of(store, "a").deferrals == 1


class TestSendingALostHeadAgain:
    def test_one_of_two_ticks_wins(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        read_by_both = chain_of(store)
        assert store.resend_head(read_by_both, now=after(minutes=4)) is True
        assert store.resend_head(read_by_both, now=after(minutes=4)) is False
        assert chain_of(store) == replace(a_chain(jobs), resends=1, head_ready_at=after(minutes=4))

    def test_a_head_that_moved_on_is_not_lost(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        read = chain_of(store)
        moved = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert store.resend_head(read, now=after(minutes=4)) is False
        assert chain_of(store) == moved

    def test_a_head_that_was_deferred_is_not_lost(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        read = chain_of(store)
        store.defer_head(jobs[0], until=after(minutes=10), now=MONDAY)
        assert store.resend_head(read, now=after(minutes=4)) is False

    def test_an_empty_head_cannot_be_sent(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        done = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert done is not None
        assert store.resend_head(done, now=after(minutes=4)) is False


class TestClaimingAStart:
    def test_one_of_two_dispatchers_wins(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        read_by_both = chain_of(store)
        assert read_by_both.awaits_start
        assert store.claim_start(read_by_both, ready_at=after(minutes=7), now=after(minutes=1)) is True
        assert store.claim_start(read_by_both, ready_at=after(minutes=8), now=after(minutes=1)) is False
        claimed = chain_of(store)
        assert claimed == replace(a_chain(jobs), head_ready_at=after(minutes=7), planned_sent_at=after(minutes=1))
        assert not claimed.awaits_start
        assert store.claim_start(claimed, ready_at=after(minutes=9), now=after(minutes=2)) is False
        assert chain_of(store) == claimed

    def test_a_chain_that_moved_on_has_begun(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a", "b"))
        read = chain_of(store)
        moved = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert store.claim_start(read, ready_at=after(minutes=7), now=after(minutes=1)) is False
        assert chain_of(store) == moved

    def test_a_head_that_was_sent_again_has_begun(self, store: Store) -> None:
        dispatched(store, links_of(store, "a"))
        read = chain_of(store)
        assert store.resend_head(read, now=after(minutes=4))
        assert not chain_of(store).awaits_start
        assert store.claim_start(read, ready_at=after(minutes=7), now=after(minutes=5)) is False

    def test_a_chain_without_a_head_has_nothing_to_start(self, store: Store) -> None:
        jobs = dispatched(store, links_of(store, "a"))
        done = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert done is not None
        assert not done.awaits_start
        assert store.claim_start(done, ready_at=after(minutes=7), now=after(minutes=1)) is False


class TestRechaining:
    def test_a_chain_that_agrees_needs_no_mending(self, store: Store) -> None:
        links = links_of(store, "a", "b", "c")
        jobs = dispatched(store, links)
        store.record(an_observation(links[0], 404, job=jobs[0]), default_confirm=1, now=after(hours=1))
        store.end_job(jobs[1], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        before = chain_of(store)
        assert store.rechain(RUN_ID, HOST, now=after(minutes=5)) is None
        assert chain_of(store) == before

    def test_an_empty_head_points_at_the_first_pending_job_and_the_counts_agree(self, store: Store) -> None:
        links = links_of(store, "a", "b", "c", "d")
        jobs = linked([a_job(link) for link in links])
        store.create_run(a_run())
        store.put_jobs(jobs)
        store.put_chain(a_chain(jobs[:1]))  # a dispatcher that saw one link put the chain first
        store.end_job(jobs[1], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        store.step_chain(jobs[1])
        for name in ("c", "d"):
            assert job_of(store, name).status is JobStatus.PENDING
        mended = store.rechain(RUN_ID, HOST, now=after(minutes=5))
        assert mended == chain_of(store)
        assert mended is not None
        assert (mended.head, mended.remaining, mended.total) == ("c", 2, 4)
        assert store.rechain(RUN_ID, HOST, now=after(minutes=6)) is None

    def test_a_head_pointing_nowhere_is_ready_now(self, store: Store) -> None:
        jobs = linked([a_job(link) for link in links_of(store, "a", "b")])
        store.create_run(a_run())
        store.put_jobs([replace(jobs[0], next=None), jobs[1]])  # the second link was registered in mid-dispatch
        store.put_chain(a_chain(jobs))
        emptied = store.end_job(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED)
        assert emptied is not None
        assert (emptied.head, emptied.remaining) == (None, 1)
        mended = store.rechain(RUN_ID, HOST, now=after(minutes=5))
        assert mended == replace(emptied, head="b", head_ready_at=after(minutes=5))

    def test_a_job_that_ended_before_its_chain_was_put_is_counted(self, store: Store) -> None:
        jobs = linked([a_job(link) for link in links_of(store, "a", "b")])
        store.create_run(a_run())
        store.put_jobs([replace(jobs[0], status=JobStatus.EXPIRED, reason=Reason.STALLED), jobs[1]])
        store.put_chain(a_chain(jobs))
        mended = store.rechain(RUN_ID, HOST, now=after(minutes=5))
        assert mended == replace(a_chain(jobs), remaining=1, counts={"expired": 1}) == chain_of(store)

    def test_a_host_without_a_chain_has_nothing_to_mend(self, store: Store) -> None:
        assert store.rechain(RUN_ID, HOST, now=MONDAY) is None


class TestRulings:
    HELD = Ruling(kind=RulingKind.HELD, at=after(minutes=31), why="7 of 9 hosts broke anew")

    def test_a_ruling_is_written_once_and_replaced_only_by_who_knows_it(self, store: Store) -> None:
        store.create_run(a_run())
        assert store.rule_on_run(RUN_ID, self.HELD, replaces=None) is True
        released = Ruling(kind=RulingKind.RELEASED, at=after(hours=2), by="ops")
        assert store.rule_on_run(RUN_ID, released, replaces=None) is False
        assert store.rule_on_run(RUN_ID, released, replaces=replace(self.HELD, why="other")) is False
        assert run_of(store).ruling == self.HELD
        assert store.rule_on_run(RUN_ID, released, replaces=self.HELD) is True
        assert run_of(store).ruling == released

    def test_it_outlives_the_closing_of_the_run_and_keeps_it_from_being_forgotten(self, store: Store) -> None:
        store.create_run(a_run())
        store.rule_on_run(RUN_ID, self.HELD, replaces=None)
        closed = store.close_run(RUN_ID, totals=RunCounts(expected=0, by_end={}), at=after(hours=1))
        assert (closed.ruling, closed.is_held) == (self.HELD, True)
        assert store.prune_runs(started_before=after(days=500)) == 0
        store.rule_on_run(RUN_ID, replace(self.HELD, kind=RulingKind.DISCARDED), replaces=self.HELD)
        assert store.prune_runs(started_before=after(days=500)) == 1

    def test_a_run_that_nobody_knows_is_not_ruled_on(self, store: Store) -> None:
        with pytest.raises(NotFound):
            store.rule_on_run(RUN_ID, self.HELD, replaces=None)


class TestPruningRuns:
    def test_closed_runs_from_before_are_forgotten_whole_and_no_other(self, store: Store) -> None:
        links = links_of(store, "a", "b")
        runs = [a_run(after(days=7 * week)) for week in range(4)]
        for run in runs:
            for job in dispatched(store, links, run=run):
                link = next(link for link in links if link.id == job.link_id)
                store.record(an_observation(link, job=job), default_confirm=1, now=after(days=30))
        for run in (runs[0], runs[2], runs[3]):
            store.close_run(run.run_id, totals=RunCounts(expected=2, by_end={"reachable": 2}), at=after(days=30))
        assert store.prune_runs(started_before=runs[3].started_at) == 2
        left: list[Run] = list(store.runs())
        assert [run.run_id for run in left] == [runs[1].run_id, runs[3].run_id]
        for run, kept in zip(runs, [False, True, False, True], strict=True):
            assert len(list(store.jobs(run.run_id))) == (2 if kept else 0)
            assert len(list(store.chains(run.run_id))) == (1 if kept else 0)
        assert len(list(store.observations())) == 8
        store.create_run(a_run(after(days=-7), state=RunState.MISSED))
        assert store.prune_runs(started_before=MONDAY) == 1
        assert store.prune_runs(started_before=runs[3].started_at) == 0
