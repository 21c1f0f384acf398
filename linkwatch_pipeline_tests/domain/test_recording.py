"""What one observation does to everything: the decision that every store commits."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import ConflictingContent
from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import RecordKind, RecordPlan, count_end, end_job, plan_record, step_head
from linkwatch_pipeline.domain.runs import JobStatus
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_chain, a_job, a_link, after, an_observation, linked

GUIDE, SETUP = a_link("guide"), a_link("setup")
JOB, NEXT_JOB = linked([a_job(GUIDE, sequence=3), a_job(SETUP, sequence=0)])
CHAIN = a_chain([JOB, NEXT_JOB])
DONE = replace(JOB, status=JobStatus.DONE, content_digest=an_observation(GUIDE, 404, job=JOB).content_digest)


def plan(observation: Observation, **items: Any) -> RecordPlan:
    """Decide about an observation of the job at the head of a chain of two; `items` replaces what was read."""
    read: dict[str, Any] = {
        "link": GUIDE, "held_by": None, "job": JOB, "chain": CHAIN, "next_allowed_at": None, "default_confirm": 1,
        "now": after(minutes=9),
    }  # fmt: skip
    return plan_record(observation, **{**read, **items})


def plan_by_hand(observation: Observation, **items: Any) -> RecordPlan:
    return plan(observation, **{"job": None, "chain": None, **items})


def seen(status: int | None = 404, **fields: Any) -> Observation:
    return an_observation(GUIDE, status, job=JOB, **fields)


def test_a_new_look_is_committed_with_all_that_follows() -> None:
    observation = seen(404)
    decided = plan(observation)
    assert decided.kind is RecordKind.APPLIED
    assert decided.observation is observation
    assert (decided.link.state, decided.link.last_sequence, decided.link.version) == (LinkState.BROKEN, 3, 1)
    assert decided.transition is not None
    assert decided.notice is not None
    assert decided.notice.transition_id == decided.transition.id == "guide:1"
    assert (decided.notice.status, decided.notice.attempts) == (NoticeStatus.PENDING, 0)
    assert (decided.notice.created_at, decided.notice.release_at) == (after(minutes=9), None)
    assert decided.job is not None
    assert (decided.job.status, decided.job.outcome, decided.job.reason) == (
        JobStatus.DONE,
        Outcome.BROKEN,
        Reason.GONE,
    )
    assert decided.job.content_digest == observation.content_digest
    assert decided.chain is not None
    assert (decided.chain.head, decided.chain.remaining, decided.chain.counts) == ("setup", 1, {"broken": 1})


def test_a_notice_carries_all_that_its_mail_says() -> None:
    link = replace(GUIDE, state=LinkState.REACHABLE, state_since=after(days=-7), version=1, also_used_by=("web",))
    notice = plan(seen(410), link=link).notice
    assert notice is not None
    assert (notice.url, notice.owner, notice.also_used_by) == (GUIDE.url, "docs-team", ("web",))
    assert (notice.from_state, notice.to_state) == (LinkState.REACHABLE, LinkState.BROKEN)
    assert (notice.since, notice.observed_status, notice.observed_reason) == (after(days=-7), 410, Reason.GONE)
    assert (notice.run_id, notice.job_id, notice.observed_at) == (RUN_ID, JOB.job_id, seen().observed_at)


@pytest.mark.parametrize("status", [200, 429, 503, None])
def test_a_look_that_is_not_worth_telling_makes_no_notice(status: int | None) -> None:
    decided = plan(seen(status))
    assert decided.kind is RecordKind.APPLIED
    assert (decided.transition, decided.notice) == (None, None)
    assert decided.observation is not None


def test_an_older_look_is_kept_as_evidence_only() -> None:
    link = replace(GUIDE, last_sequence=7, state=LinkState.REACHABLE, version=1)
    decided = plan(seen(404), link=link)
    assert (decided.kind, decided.link, decided.transition) == (RecordKind.HISTORY, link, None)
    assert decided.observation is not None
    assert decided.job is not None
    assert decided.job.status is JobStatus.DONE


def test_a_replay_of_a_done_job_changes_nothing() -> None:
    later = seen(404, observed_at=after(days=1), latency_ms=7)
    assert plan(later, job=DONE) == RecordPlan(kind=RecordKind.DUPLICATE, link=GUIDE)


def test_a_replay_with_other_content_is_refused() -> None:
    with pytest.raises(ConflictingContent, match="already committed with other content"):
        plan(seen(200), job=DONE)


@pytest.mark.parametrize("status", [JobStatus.CANCELLED, JobStatus.EXPIRED, JobStatus.ABANDONED])
def test_a_job_that_ended_otherwise_takes_no_observation(status: JobStatus) -> None:
    assert plan(seen(), job=replace(JOB, status=status)) == RecordPlan(kind=RecordKind.JOB_ENDED, link=GUIDE)


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (replace(GUIDE, config_version=2), Reason.CONFIG_CHANGED),
        (replace(GUIDE, config_version=2, url="https://docs.example.com/moved"), Reason.CONFIG_CHANGED),
        (replace(GUIDE, config_version=2, retired_at=MONDAY), Reason.RETIRED),
    ],
)
def test_a_link_configured_otherwise_cancels_the_job(link: Link, reason: Reason) -> None:
    decided = plan(seen(), link=link)
    assert (decided.kind, decided.link, decided.observation) == (RecordKind.CONFIG_CHANGED, link, None)
    assert decided.job == replace(JOB, status=JobStatus.CANCELLED, reason=reason)
    assert decided.chain is not None
    assert (decided.chain.head, decided.chain.remaining, decided.chain.counts) == ("setup", 1, {"cancelled": 1})


def test_a_sequence_held_by_another_job_cancels_this_one() -> None:
    decided = plan(seen(), held_by=an_observation(GUIDE, 200, sequence=3))
    assert (decided.kind, decided.observation) == (RecordKind.SEQUENCE_TAKEN, None)
    assert decided.job == replace(JOB, status=JobStatus.CANCELLED, reason=Reason.SEQUENCE_TAKEN)


def test_a_check_by_hand_touches_no_run() -> None:
    decided = plan_by_hand(an_observation(GUIDE, 404, sequence=5))
    assert (decided.kind, decided.job, decided.chain) == (RecordKind.APPLIED, None, None)
    assert decided.notice is not None
    assert decided.notice.run_id is None


def test_a_check_by_hand_can_be_repeated() -> None:
    observation = an_observation(GUIDE, 404, sequence=5)
    again = replace(observation, observed_at=after(days=1), latency_ms=1)
    assert plan_by_hand(again, held_by=observation) == RecordPlan(kind=RecordKind.DUPLICATE, link=GUIDE)


@pytest.mark.parametrize(
    ("observation", "link", "held_by", "problem"),
    [
        (an_observation(GUIDE, 200, sequence=5), GUIDE, an_observation(GUIDE, 404, sequence=5), "other content"),
        (an_observation(GUIDE, 200, sequence=3), GUIDE, seen(200), "already held by job"),
        (an_observation(a_link(url="https://docs.example.com/x"), 200), GUIDE, None, "registered with another URL"),
        (an_observation(GUIDE, 200), replace(GUIDE, config_version=2), None, "changed or retired"),
        (an_observation(GUIDE, 200), replace(GUIDE, retired_at=MONDAY), None, "changed or retired"),
    ],
)
def test_a_check_by_hand_that_contradicts_what_is_stored_is_refused(
    observation: Observation, link: Link, held_by: Observation | None, problem: str
) -> None:
    with pytest.raises(ConflictingContent, match=problem):
        plan_by_hand(observation, link=link, held_by=held_by)


@pytest.mark.parametrize(
    ("head_ready_at", "next_allowed_at", "ready"),
    [
        (MONDAY, None, MONDAY),
        (MONDAY, after(minutes=15), after(minutes=15)),
        (after(minutes=20), after(minutes=15), after(minutes=20)),
    ],
)
def test_the_next_head_is_ready_when_its_host_may_be_visited(
    head_ready_at: datetime, next_allowed_at: datetime | None, ready: datetime
) -> None:
    chain = replace(CHAIN, head_ready_at=head_ready_at, resends=4)
    decided = plan(seen(429), chain=chain, next_allowed_at=next_allowed_at)
    assert decided.chain is not None
    assert (decided.chain.head, decided.chain.head_ready_at, decided.chain.resends) == ("setup", ready, 0)


def test_a_job_that_is_not_the_head_is_counted_but_moves_nothing() -> None:
    after_ = count_end(CHAIN, NEXT_JOB, "reachable", after(minutes=15))
    assert (after_.head, after_.head_ready_at) == (CHAIN.head, CHAIN.head_ready_at)
    assert (after_.remaining, after_.counts) == (1, {"reachable": 1})


def test_the_last_job_leaves_an_empty_head() -> None:
    assert step_head(replace(CHAIN, head="setup"), NEXT_JOB, None).head is None


def test_a_terminal_head_is_stepped_over_without_counting() -> None:
    stepped = step_head(CHAIN, JOB, None)
    assert (stepped.head, stepped.remaining, stepped.counts) == ("setup", CHAIN.remaining, CHAIN.counts)


def test_throttled_answers_in_a_row_are_counted_and_any_other_ends_the_row() -> None:
    streaks = []
    chain = CHAIN
    for status in (429, 429, 200, 429, None):
        decided = plan(seen(status), chain=chain)
        assert decided.chain is not None
        chain = decided.chain
        streaks.append(chain.streak)
    assert streaks == [1, 2, 0, 1, 0]


def test_a_throttled_answer_counts_whichever_host_a_redirect_led_to() -> None:
    """Else each link that leads to a host in a long pause would hold its own host's chain up for that pause."""
    throttled_there = seen(429, final_url="https://sign-in.example.org/login")
    chain = plan(throttled_there, chain=replace(CHAIN, streak=2)).chain
    assert chain is not None
    assert chain.streak == 3


def test_a_job_that_ends_without_an_answer_leaves_the_row_as_it_is() -> None:
    _, chain = end_job(
        JOB, replace(CHAIN, streak=2), status=JobStatus.EXPIRED, reason=Reason.HOST_THROTTLED, next_allowed_at=None
    )
    assert (chain.streak, chain.counts) == (2, {"expired": 1})


def test_the_active_interval_of_a_host_spans_all_its_looks() -> None:
    first = seen(200, started_at=after(minutes=5), observed_at=after(minutes=6))
    second = seen(200, started_at=after(minutes=1), observed_at=after(minutes=2))
    chain = plan(first).chain
    assert chain is not None
    both = plan(second, chain=chain).chain
    assert both is not None
    assert (both.first_observed_at, both.last_observed_at) == (after(minutes=1), after(minutes=6))
