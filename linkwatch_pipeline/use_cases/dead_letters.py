"""Dead letters: messages that the queue gave up. Their jobs end, their chains move on, and people can see them.

Used by the loop of one process and by a tick elsewhere, so that both treat a letter alike (docs/decisions/0014).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus, Run, later_retry_runs
from linkwatch_pipeline.ports import Damaged, Queue, Store
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.dispatch import due_head

logger = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=14)  # as long as a queue keeps them (SPEC 7.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A letter's job that ended just now, and the host's next job with the delay to send it with, if there is one."""

    job: JobRecord
    following: tuple[JobRecord, timedelta] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A job that was given up; `redriven_as` is the job that looks at its link again, None if none does."""

    job: JobRecord
    redriven_as: JobRecord | None


def settle_dead_letters(store: Store, queue: Queue, *, now: datetime, keep: bool) -> Iterator[Settled]:
    """End the job of each dead letter as abandoned; the caller sends what follows.

    Args: keep: whether the letter of an abandoned job stays in the queue, for its alarm and for a redrive. It costs
        one read a time. Letters of jobs that ended otherwise, by another copy of the message, never stay; those of
        checks by hand, which have no job, and of damaged jobs stay too.
    """
    damage = Damage()
    for letter in queue.dead_letters():
        try:
            yield from _settle(store, queue, letter, now=now, keep=keep)
        except DamagedRecord as error:
            damage(error)


def _settle(store: Store, queue: Queue, letter: CheckJob, *, now: datetime, keep: bool) -> Iterator[Settled]:
    job = store.get_job(letter.run_id, letter.link_id)
    if job is not None and job.status is JobStatus.PENDING:
        yield from _end(store, job, now)
        job = store.get_job(letter.run_id, letter.link_id)
    given_up = letter.is_by_hand or (job is not None and job.status is JobStatus.ABANDONED)
    if not keep or not given_up:
        queue.remove_dead_letter(letter.job_id)
        if keep or job is None:
            _log_removed(letter, job)


def _log_removed(letter: CheckJob, job: JobRecord | None) -> None:
    told = {"action": "drop", "job_id": letter.job_id, "run_id": letter.run_id, "error": why_stray(job)}
    logger.warning("dead letter thrown away", extra=told)


def why_stray(job: JobRecord | None) -> str:
    """Why a letter has nothing to tell of its job, which was not given up."""
    return "its job is not known here" if job is None else f"its job is {job.status.value}"


def _end(store: Store, job: JobRecord, now: datetime) -> Iterator[Settled]:
    chain = store.end_job(job, status=JobStatus.ABANDONED, reason=Reason.DEAD_LETTER)
    if chain is not None:
        yield Settled(job=job, following=due_head(store, chain, now=now) if chain.head == job.next else None)


def dead_letters(store: Store, *, now: datetime, damaged: Damaged | None = None) -> Iterator[DeadLetter]:
    """The jobs that were given up in runs that began within 14 days, in (run, host, link) order.

    Args: damaged: as in `ports.damaged`, of runs.
    """
    return letters_of(store, (run for run in store.runs(damaged=damaged) if run.started_at >= now - KEPT_FOR))


def letters_of(store: Store, runs: Iterable[Run]) -> Iterator[DeadLetter]:
    """The jobs of these runs that were given up, in (run, host, link) order."""
    for run in runs:
        if JobStatus.ABANDONED.value not in run_counts(store, run).by_end:
            continue
        for job in store.jobs(run.run_id):
            if job.status is JobStatus.ABANDONED:
                yield DeadLetter(job=job, redriven_as=redriven_as(store, job))


def redriven_as(store: Store, job: JobRecord) -> JobRecord | None:
    """The job of a later run of the week that looks at the link again for this one."""
    first = job.retry_of or job.job_id
    again = (store.get_job(run_id, job.link_id) for run_id in later_retry_runs(job.run_id))
    return next((found for found in again if found is not None and found.retry_of == first), None)
