"""Close a run: when every job is terminal, or when its time is up; what deserves another look becomes a retry run."""

from __future__ import annotations

from datetime import datetime

from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import (
    RETRY_WINDOW,
    JobStatus,
    Run,
    RunCounts,
    RunState,
    count_chains,
    retry_run_id,
)
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.dispatch import needs_retry


def close_if_over(store: Store, run: Run, *, now: datetime) -> Run:
    """The run, closed if all its jobs are terminal or its six hours have passed (what is pending then expires)."""
    if run.state.is_over:
        return run
    if now >= run.expires_at:
        expire_pending(store, run)
    elif run.state is RunState.DISPATCHING or count_chains(store.chains(run.run_id)).pending:
        return run
    create_retry_run(store, run, now=now)
    return store.close_run(run.run_id, totals=run_counts(store, run), at=now)


def run_counts(store: Store, run: Run) -> RunCounts:
    """The run's arithmetic: as closed, or as its hosts' counters stand now."""
    return run.totals if run.totals is not None else count_chains(store.chains(run.run_id))


def expire_pending(store: Store, run: Run) -> None:
    """End what is still pending, one transaction a job: resumable anywhere."""
    for job in store.jobs(run.run_id):
        if job.status is JobStatus.PENDING:
            store.end_job(job, status=JobStatus.EXPIRED, reason=Reason.STALLED)


def create_retry_run(store: Store, run: Run, *, now: datetime) -> Run | None:
    """The run that looks again at throttled and expired jobs, if there are any and the retry window is open.

    It exists before `run` closes, and its members are read off `run`'s jobs, which never change again: a crash
    between the two loses nothing.
    """
    run_id = retry_run_id(run.run_id)
    if run_id is None or now > run.intended_at + RETRY_WINDOW:
        return None
    if not any(needs_retry(job) for job in store.jobs(run.run_id)):
        return None
    return store.create_run(Run(run_id=run_id, intended_at=run.intended_at, started_at=now, retry_of=run.run_id))
