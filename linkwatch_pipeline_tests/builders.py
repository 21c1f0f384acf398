"""Small builders: a link, an observation, a run and its jobs, with everything a test does not care about filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from linkwatch_pipeline.domain.links import AllocationSlot, Link
from linkwatch_pipeline.domain.observations import Observation, body_hash
from linkwatch_pipeline.domain.outcomes import RULES_VERSION, classify
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, Run, hand_job_id, retry_run_id, weekly_run_id
from linkwatch_pipeline.domain.urls import canonical_url, host_key
from linkwatch_pipeline.ports import Store

MONDAY = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
RUN_ID = weekly_run_id(MONDAY)
RETRY_ID = retry_run_id(RUN_ID) or ""
URL = "https://docs.example.com/guide"


def after(**duration: float) -> datetime:
    """A moment after MONDAY: `after(minutes=5)`."""
    return MONDAY + timedelta(**duration)


def a_link(link_id: str = "guide", url: str = URL, **fields: Any) -> Link:
    """A link of the docs team that was registered a day before MONDAY."""
    given = {"owner": "docs-team", "active_since": after(days=-1), "allocations": {}, **fields}
    return Link(id=link_id, url=canonical_url(url), host=host_key(url), **given)


def a_run(intended_at: datetime = MONDAY, **fields: Any) -> Run:
    """A weekly run that started on time."""
    given = {"run_id": weekly_run_id(intended_at), "started_at": intended_at, **fields}
    return Run(intended_at=intended_at, **given)


def a_job(link: Link, *, run_id: str = RUN_ID, sequence: int = 0, **fields: Any) -> JobRecord:
    """A pending job for a link as it is configured."""
    given = {"host": link.host, "config_version": link.config_version, **fields}
    return JobRecord(run_id=run_id, link_id=link.id, sequence=sequence, **given)


def linked(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """One host's jobs in id order, each naming the next."""
    ordered = sorted(jobs, key=lambda job: job.link_id)
    following = [*(job.link_id for job in ordered[1:]), None]
    return [replace(job, next=link_id) for job, link_id in zip(ordered, following, strict=True)]


def a_chain(jobs: Sequence[JobRecord], **fields: Any) -> HostChain:
    """The chain of one host's jobs, its head the first of them, ready on MONDAY."""
    head = min(jobs, key=lambda job: job.link_id)
    given = {"head": head.link_id, "head_ready_at": MONDAY, "remaining": len(jobs), "total": len(jobs), **fields}
    return HostChain(run_id=head.run_id, host=head.host, **given)


def an_observation(
    link: Link,
    status: int | None = 200,
    *,
    sequence: int = 0,
    job: JobRecord | None = None,
    marker_found: bool | None = None,
    body: bytes = b"guide-v1: learning resource",
    **fields: Any,
) -> Observation:
    """One look at a link: for a job (with its sequence), or by hand. `status` None is a timeout."""
    verdict = classify(status, marker_found=marker_found)
    if job is not None:
        identity = {"job_id": job.job_id, "run_id": job.run_id, "sequence": job.sequence, "retry_of": job.retry_of}
        identity["config_version"] = job.config_version
    else:
        identity = {"job_id": hand_job_id(sequence, link.id), "run_id": None, "sequence": sequence}
        identity["config_version"] = link.config_version
    seen_at = after(minutes=1 + int(str(identity["sequence"])))
    given = {
        **identity,
        "link_id": link.id,
        "url": link.url,
        "rules_version": RULES_VERSION,
        "started_at": seen_at - timedelta(milliseconds=120),
        "observed_at": seen_at,
        "status": status,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "content_hash": body_hash(body) if status is not None else None,
        "marker_found": marker_found,
        "bytes_read": len(body) if status is not None else 0,
        "latency_ms": 120,
        "final_url": link.url,
        **fields,
    }
    return Observation(**given)


def dispatched(store: Store, links: Sequence[Link], *, run: Run | None = None) -> list[JobRecord]:
    """Put an open run over links that are in the store, with its jobs and chains; the jobs in (host, id) order."""
    run = store.create_run(run if run is not None else a_run())
    slot = AllocationSlot.WEEKLY if run.retry_of is None else AllocationSlot.RETRY
    jobs: list[JobRecord] = []
    for host in sorted({link.host for link in links}):
        own = [link for link in links if link.host == host]
        sequences = [held.sequence for held in store.allocate(own, slot, run.run_id) if held is not None]
        chained = linked([a_job(link, run_id=run.run_id, sequence=n) for link, n in zip(own, sequences, strict=True)])
        store.put_jobs(chained)
        store.put_chain(a_chain(chained))
        jobs.extend(chained)
    store.finish_dispatch(run.run_id, expected=len(jobs), at=run.started_at)
    return jobs
