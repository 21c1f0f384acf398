"""Identities, deadlines and arithmetic of runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.runs import (
    COUNTED,
    MAX_RETRY_RUNS,
    RESEND_AFTER,
    JobStatus,
    RunCounts,
    check_run_id,
    count_chains,
    hand_job_id,
    is_late,
    is_retry,
    job_id,
    resend_due_at,
    retry_run_id,
    split_job_id,
    weekly_part,
    weekly_run_id,
)
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_chain, a_job, a_link, a_run, after

LINK_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", fullmatch=True)


def test_the_intended_time_is_the_identity() -> None:
    assert weekly_run_id(MONDAY) == "2026-09-28T09:00:00Z"


def test_retry_runs_follow_each_other_until_the_last() -> None:
    ids = [RUN_ID]
    while (following := retry_run_id(ids[-1])) is not None:
        ids.append(following)
    assert ids == [RUN_ID, *(f"{RUN_ID}~retry-{n}" for n in range(1, MAX_RETRY_RUNS + 1))]
    assert [is_retry(run_id) for run_id in ids] == [False, True, True, True]
    assert {weekly_part(run_id) for run_id in ids} == {RUN_ID}
    assert ids == sorted(ids)
    assert [check_run_id(run_id) for run_id in ids] == ids


@pytest.mark.parametrize(
    "value",
    ["", "guide", "2026-09-28", "2026-09-28T09:00:00", "2026-09-28T09:00:00.5Z", "2026-09-28T11:00:00+02:00",
     f"{RUN_ID}~retry-", f"{RUN_ID}~retry-x", f"{RUN_ID}~retry-1~retry-2", f"{RUN_ID}:guide"],
)  # fmt: skip
def test_what_is_no_run_id_is_refused(value: str) -> None:
    with pytest.raises(ValueError):
        check_run_id(value)


@given(LINK_IDS, st.integers(0, MAX_RETRY_RUNS))
def test_a_job_id_can_be_taken_apart(link_id: str, retries: int) -> None:
    run_id = f"{RUN_ID}~retry-{retries}" if retries else RUN_ID
    assert split_job_id(job_id(run_id, link_id)) == (run_id, link_id)


@given(LINK_IDS, st.integers(0, 2**53))
def test_a_check_by_hand_belongs_to_no_run(link_id: str, sequence: int) -> None:
    assert hand_job_id(sequence, link_id) == f"{sequence}:{link_id}"
    assert split_job_id(hand_job_id(sequence, link_id)) == (None, link_id)


def test_the_message_is_copied_from_the_job() -> None:
    job = a_job(a_link(config_version=4), sequence=7)
    message = job.message
    assert (message.job_id, message.run_id, message.link_id) == (f"{RUN_ID}:guide", RUN_ID, "guide")
    assert (message.sequence, message.config_version) == (7, 4)


@pytest.mark.parametrize(
    ("closed_at", "now", "late"),
    [
        (None, after(minutes=30), False),
        (None, after(minutes=30, microseconds=1), True),
        (after(minutes=29), after(days=3), False),  # a run that ended in time stays in time
        (after(minutes=31), after(days=3), True),
    ],
)
def test_a_run_is_late_half_an_hour_after_its_intended_time(
    closed_at: datetime | None, now: datetime, late: bool
) -> None:
    assert is_late(a_run(started_at=after(minutes=20), closed_at=closed_at), now) is late


def test_a_retry_run_is_late_by_its_own_start() -> None:
    retry = a_run(retry_of=RUN_ID, started_at=after(hours=2))
    assert retry.deadline_at == after(hours=2, minutes=30)
    assert a_run(started_at=after(hours=2)).deadline_at == after(minutes=30)


def test_a_run_is_given_up_six_hours_after_its_start() -> None:
    assert a_run(started_at=after(minutes=20)).expires_at == after(hours=6, minutes=20)


@pytest.mark.parametrize("field", ["intended_at", "started_at"])
def test_a_run_has_no_naive_times(field: str) -> None:
    naive: dict[str, Any] = {field: MONDAY.replace(tzinfo=None)}
    with pytest.raises(ValueError, match=field):
        replace(a_run(), **naive)


COUNTS = st.dictionaries(st.sampled_from(COUNTED), st.integers(1, 50), max_size=len(COUNTED))


@given(st.lists(st.tuples(COUNTS, st.integers(0, 50)), max_size=6))
def test_a_runs_arithmetic_is_the_sum_over_its_hosts(hosts: list[tuple[dict[str, int], int]]) -> None:
    chains = [
        a_chain([a_job(a_link())], counts=counts, total=sum(counts.values()) + left, remaining=left)
        for counts, left in hosts
    ]
    counts = count_chains(chains)
    assert counts.pending == sum(left for _, left in hosts)
    assert counts.terminal + counts.pending == counts.expected
    assert all(counts.by_end[end] == sum(c.get(end, 0) for c, _ in hosts) for end in counts.by_end)
    assert list(counts.by_end) == [end for end in COUNTED if any(end in c for c, _ in hosts)]


def test_a_run_without_hosts_expects_nothing() -> None:
    assert count_chains([]) == RunCounts(expected=0, by_end={})


def test_every_status_but_pending_is_terminal() -> None:
    assert [status for status in JobStatus if not status.is_terminal] == [JobStatus.PENDING]


@pytest.mark.parametrize(
    ("resends", "next_allowed_at", "lease_until", "due"),
    [
        (0, None, None, RESEND_AFTER),
        (0, after(minutes=10), None, timedelta(minutes=10) + RESEND_AFTER),
        (0, after(minutes=10), after(minutes=11), timedelta(minutes=11) + RESEND_AFTER),
        (0, after(minutes=-10), after(minutes=-1), RESEND_AFTER),
        (3, None, None, RESEND_AFTER * 8),
        (50, None, None, RESEND_AFTER * 64),
    ],
)
def test_a_head_is_taken_for_lost_only_after_everything_it_may_wait_for(
    resends: int, next_allowed_at: datetime | None, lease_until: datetime | None, due: timedelta
) -> None:
    chain = a_chain([a_job(a_link())], resends=resends)
    assert resend_due_at(chain, next_allowed_at, lease_until) == MONDAY + due
