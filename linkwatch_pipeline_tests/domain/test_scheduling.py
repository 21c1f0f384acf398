"""Which host goes first, and when a slot is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.scheduling import WorkBook


def book(concurrency: int = 2, **hosts: int) -> WorkBook:
    """A book with a cooldown of one second and jobs of two seconds each on the given hosts."""
    made = WorkBook(concurrency=concurrency, cooldown=timedelta(seconds=1))
    for host, jobs in hosts.items():
        made.expect(host, jobs)
    return made


def visit(work: WorkBook, host: str, seconds: float, jobs_done: int = 1) -> None:
    work.begin(host)
    work.end(host, took=timedelta(seconds=seconds), jobs_done=jobs_done)


def test_work_left_counts_the_pauses() -> None:
    assert book(a=10).work_left("a") == 10 * (2 + 1)


def test_a_host_without_jobs_has_no_work() -> None:
    assert book(a=1).work_left("b") == 0
    assert not book(a=1).is_critical("b")


def test_a_visit_takes_one_job_off_and_teaches_how_long_they_are() -> None:
    work = book(a=10)
    visit(work, "a", seconds=4)
    assert work.work_left("a") == 9 * (3 + 1)  # the assumed 2 s and the seen 4 s


def test_a_visit_that_has_to_come_back_changes_nothing() -> None:
    work = book(a=10)
    visit(work, "a", seconds=4, jobs_done=0)
    assert work.work_left("a") == 10 * 3


def test_a_host_that_is_done_is_forgotten() -> None:
    work = book(a=1, b=5)
    visit(work, "a", seconds=1)
    assert work.work_left("a") == 0


def test_a_host_is_critical_when_it_needs_longer_than_all_the_rest_side_by_side() -> None:
    work = book(concurrency=2, big=50, **{f"h{n}": 1 for n in range(20)})
    assert work.is_critical("big")  # 150 s; everything together needs 140 s / 2
    assert not work.is_critical("h0")


@pytest.mark.parametrize(("busy", "keeps"), [(0, False), (1, True), (2, True)])
def test_only_the_last_slot_is_kept_for_a_critical_host_between_visits(busy: int, keeps: bool) -> None:
    work = book(concurrency=2, big=50, **{f"h{n}": 1 for n in range(20)})
    assert work.keeps_last_slot(busy) is keeps


def test_no_slot_is_kept_while_the_critical_host_is_being_visited() -> None:
    work = book(concurrency=2, big=50, **{f"h{n}": 1 for n in range(20)})
    work.begin("big")
    assert not work.keeps_last_slot(1)
    work.end("big", took=timedelta(seconds=2), jobs_done=1)
    assert work.keeps_last_slot(1)


def test_no_slot_is_kept_for_a_host_that_asked_for_a_pause_until_it_is_visited_again() -> None:
    work = book(concurrency=2, big=50, **{f"h{n}": 1 for n in range(20)})
    work.pause("big")
    assert not work.keeps_last_slot(1)
    visit(work, "big", seconds=2)
    assert work.keeps_last_slot(1)


def test_no_slot_is_kept_among_equals() -> None:
    work = book(concurrency=2, **{f"h{n}": 5 for n in range(40)})
    assert not work.keeps_last_slot(1)


def test_the_critical_hosts_last_job_frees_the_slot() -> None:
    work = book(concurrency=2, big=2, **{f"h{n}": 1 for n in range(3)})
    for _ in range(2):
        visit(work, "big", seconds=2)
    assert not work.is_critical("big")


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 8), min_size=1),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.0, 10.0), st.integers(0, 1)), max_size=40),
)
def test_the_kept_slot_always_has_a_critical_host_to_wait_for(
    hosts: dict[str, int], visits: list[tuple[str, float, int]]
) -> None:
    work = book(concurrency=3, **hosts)
    for host, seconds, done in visits:
        if work.work_left(host) > 0:
            visit(work, host, seconds, jobs_done=done)
        assert work.work_left(host) >= 0
        assert work.keeps_last_slot(2) is any(work.is_critical(name) for name in hosts)
    for host in hosts:
        while work.work_left(host) > 0:
            visit(work, host, 1.0)
    assert not work.keeps_last_slot(3)
