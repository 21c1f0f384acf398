"""Runs, their jobs and their host chains in SQLite (`ports.RunStore`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from linkwatch_pipeline.adapters.store.rows import CHAINS, HOSTS, JOBS, LINKS, RUNS
from linkwatch_pipeline.adapters.store.sqlite_database import Database
from linkwatch_pipeline.adapters.store.sqlite_transactions import Transaction
from linkwatch_pipeline.domain import recording
from linkwatch_pipeline.domain.errors import NotFound
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import (
    DEFER_SLACK,
    HostChain,
    JobRecord,
    JobStatus,
    Ruling,
    RulingKind,
    Run,
    RunCounts,
    RunState,
    gives_way,
)
from linkwatch_pipeline.domain.sequences import has_next_sequence, next_sequence
from linkwatch_pipeline.domain.timestamps import format_utc
from linkwatch_pipeline.ports import Damaged

# All that the end of a job writes: naming it keeps jobs_by_host out of the commit.
JOB_END = ("status", "outcome", "reason", "content_digest")


class SqliteRuns:
    """Runs, jobs and chains."""

    _database: Database

    def create_run(self, run: Run) -> Run:
        with self._database.transaction() as write:
            if not write.insert_if_absent(RUNS, run) and gives_way(_stored_run(write, run.run_id), run):
                write.update(RUNS, run)
            return _stored_run(write, run.run_id)

    def get_run(self, run_id: str) -> Run | None:
        return self._database.get(RUNS, run_id)

    def runs(self, *, open_only: bool = False, damaged: Damaged | None = None) -> Iterator[Run]:
        # 400 days hold at most 232 runs, retry runs included: reading them all is cheap.
        runs = self._database.stream(RUNS, order=("run_id",), damaged=damaged)
        return (run for run in runs if not run.state.is_over) if open_only else runs

    def allocate(self, links: Sequence[Link], slot: AllocationSlot, run_id: str) -> list[Allocation | None]:
        with self._database.transaction() as write:
            return [_allocate(write, link, slot, run_id) for link in links]

    def put_jobs(self, jobs: Sequence[JobRecord]) -> None:
        with self._database.transaction() as write:
            for job in jobs:
                write.insert_if_absent(JOBS, job)

    def put_chain(self, chain: HostChain) -> bool:
        with self._database.transaction() as write:
            return write.insert_if_absent(CHAINS, chain)

    def save_dispatch_progress(self, run_id: str, *, cursor: str, dispatched: int) -> None:
        with self._database.transaction() as write:
            write.execute(
                "UPDATE runs SET cursor = ?, dispatched = max(dispatched, ?)"
                " WHERE run_id = ? AND state = ? AND (cursor IS NULL OR cursor < ?)",
                (cursor, dispatched, run_id, RunState.DISPATCHING.value, cursor),
            )

    def finish_dispatch(self, run_id: str, *, expected: int, at: datetime) -> Run:
        with self._database.transaction() as write:
            run = _stored_run(write, run_id)
            if run.state is RunState.DISPATCHING:
                run = replace(run, state=RunState.OPEN, expected=expected, dispatched=expected, dispatched_at=at)
                write.update(RUNS, run)
            return run

    def get_job(self, run_id: str, link_id: str) -> JobRecord | None:
        return self._database.get(JOBS, run_id, link_id)

    def jobs(self, run_id: str, *, host: str | None = None) -> Iterator[JobRecord]:
        # Both lean on jobs_by_host. One host's begin behind "", which is before every link: without a bound there,
        # SQLite prefers the table's own key and reads all jobs of the run.
        if host is None:
            return self._database.stream(JOBS, "run_id = ?", values=(run_id,), order=("host", "link_id"))
        of_host = ("run_id = ?", "host = ?")
        return self._database.stream(JOBS, *of_host, values=(run_id, host), order=("link_id",), after=("",))

    def get_chain(self, run_id: str, host: str) -> HostChain | None:
        return self._database.get(CHAINS, run_id, host)

    def chains(self, run_id: str) -> Iterator[HostChain]:
        return self._database.stream(CHAINS, "run_id = ?", values=(run_id,), order=("host",))

    def longest_chains(self, run_id: str, *, limit: int, ready_by: datetime | None = None) -> Sequence[HostChain]:
        # No index: each check would have to write it. This scans the run's chains and keeps `limit` rows.
        ready = "" if ready_by is None else "AND head_ready_at <= ?"
        return self._database.rows(
            CHAINS,
            f"run_id = ? AND remaining > 0 {ready} ORDER BY remaining DESC, host LIMIT ?",
            (run_id, limit) if ready_by is None else (run_id, format_utc(ready_by), limit),
        )

    def end_job(self, job: JobRecord, *, status: JobStatus, reason: Reason) -> HostChain | None:
        with self._database.transaction() as write:
            stored = write.get(JOBS, job.run_id, job.link_id)
            if stored is None or stored.status.is_terminal:
                return None
            chain = write.get(CHAINS, stored.run_id, stored.host)
            if chain is None:
                # Its dispatch ended between jobs and chain, and the run is given up: count it all the same.
                chain = _chain_from_jobs(write, stored)
                write.insert(CHAINS, chain)
            allowed_at = next_allowed_at(write, stored.host)
            ended, after = recording.end_job(stored, chain, status=status, reason=reason, next_allowed_at=allowed_at)
            write.update(JOBS, ended, *JOB_END)
            write.update(CHAINS, after)
            return after

    def step_chain(self, job: JobRecord) -> HostChain | None:
        with self._database.transaction() as write:
            stored = write.get(JOBS, job.run_id, job.link_id)
            chain = write.get(CHAINS, job.run_id, job.host)
            if stored is None or chain is None or not stored.status.is_terminal or chain.head != stored.link_id:
                return None
            after = recording.step_head(chain, stored, next_allowed_at(write, stored.host))
            write.update(CHAINS, after)
            return after

    def defer_head(self, job: JobRecord, *, until: datetime, now: datetime) -> bool:
        with self._database.transaction() as write:
            changed = write.execute(
                "UPDATE chains SET head_ready_at = ? WHERE run_id = ? AND host = ? AND head = ? AND head_ready_at <= ?",
                (format_utc(until), job.run_id, job.host, job.link_id, format_utc(now + DEFER_SLACK)),
            )
            return changed == 1

    def count_deferral(self, job: JobRecord) -> int:
        with self._database.transaction() as write:
            stored = write.get(JOBS, job.run_id, job.link_id)
            if stored is None:
                raise NotFound(f"run {job.run_id} has no job for link {job.link_id!r}.")
            if stored.status is JobStatus.PENDING:
                stored = replace(stored, deferrals=stored.deferrals + 1)
                write.update(JOBS, stored, "deferrals")
            return stored.deferrals

    def resend_head(self, chain: HostChain, *, now: datetime) -> bool:
        with self._database.transaction() as write:
            changed = write.execute(
                "UPDATE chains SET resends = resends + 1, head_ready_at = ?"
                " WHERE run_id = ? AND host = ? AND head = ? AND head_ready_at = ? AND resends = ?",
                (
                    format_utc(now),
                    chain.run_id,
                    chain.host,
                    chain.head,
                    format_utc(chain.head_ready_at),
                    chain.resends,
                ),
            )
            return changed == 1

    def claim_start(self, chain: HostChain, *, ready_at: datetime, now: datetime) -> bool:
        with self._database.transaction() as write:
            changed = write.execute(
                "UPDATE chains SET planned_sent_at = ?, head_ready_at = ? WHERE run_id = ? AND host = ? AND head = ?"
                " AND head_ready_at = ? AND resends = ? AND planned_sent_at IS NULL",
                (
                    format_utc(now),
                    format_utc(ready_at),
                    chain.run_id,
                    chain.host,
                    chain.head,
                    format_utc(chain.head_ready_at),
                    chain.resends,
                ),
            )
            return changed == 1

    def rechain(self, run_id: str, host: str, *, now: datetime) -> HostChain | None:
        with self._database.transaction() as write:
            chain = write.get(CHAINS, run_id, host)
            if chain is None:
                return None
            mended = _agreeing(write, chain, now)
            if mended == chain:
                return None
            write.update(CHAINS, mended)
            return mended

    def close_run(self, run_id: str, *, totals: RunCounts, at: datetime) -> Run:
        with self._database.transaction() as write:
            run = _stored_run(write, run_id)
            if not run.state.is_over:
                run = replace(run, state=RunState.CLOSED, totals=totals, closed_at=at)
                write.update(RUNS, run)
            return run

    def rule_on_run(self, run_id: str, ruling: Ruling, *, replaces: Ruling | None) -> bool:
        with self._database.transaction() as write:
            run = _stored_run(write, run_id)
            if run.ruling != replaces:
                return False
            write.update(RUNS, replace(run, ruling=ruling), "ruling")
            return True

    def prune_runs(self, *, started_before: datetime) -> int:
        old = (
            "SELECT run_id FROM runs WHERE state IN (?, ?) AND started_at < ?"
            " AND coalesce(json_extract(ruling, '$.kind'), '') <> ?"
        )
        values = (RunState.CLOSED.value, RunState.MISSED.value, format_utc(started_before), RulingKind.HELD.value)
        with self._database.transaction() as write:
            write.execute(f"DELETE FROM jobs WHERE run_id IN ({old})", values)
            write.execute(f"DELETE FROM chains WHERE run_id IN ({old})", values)
            return write.execute(f"DELETE FROM runs WHERE run_id IN ({old})", values)


def next_allowed_at(write: Transaction, host: str) -> datetime | None:
    """When the host may next be visited, as stored."""
    record = write.get(HOSTS, host)
    return record.next_allowed_at if record is not None else None


def _stored_run(write: Transaction, run_id: str) -> Run:
    run = write.get(RUNS, run_id)
    if run is None:
        raise NotFound(f"there is no run {run_id}.")
    return run


def _allocate(write: Transaction, link: Link, slot: AllocationSlot, run_id: str) -> Allocation | None:
    stored = write.get(LINKS, link.id)
    if stored is None:
        return None
    held = stored.allocations.get(slot)
    if held is not None and held.run_id == run_id:
        return held
    if _configured(stored) != _configured(link) or not has_next_sequence(stored):
        return None
    allocation = Allocation(
        run_id=run_id,
        sequence=next_sequence(stored),
        host=stored.host,
        config_version=stored.config_version,
    )
    write.update(LINKS, replace(stored, allocations={**stored.allocations, slot: allocation}), "allocations")
    return allocation


def _configured(link: Link) -> tuple[str, int, datetime | None]:
    return link.url, link.config_version, link.retired_at


def _agreeing(write: Transaction, chain: HostChain, now: datetime) -> HostChain:
    """The chain as its jobs say it has to be; a head that is set stays."""
    ends: Counter[str] = Counter()
    first_pending: str | None = None
    # jobs_by_host
    for link_id, status, outcome in write.rows(
        "SELECT link_id, status, outcome FROM jobs WHERE run_id = ? AND host = ? AND link_id > '' ORDER BY link_id",
        (chain.run_id, chain.host),
    ):
        ends[outcome or status] += 1
        if status == JobStatus.PENDING and first_pending is None:
            first_pending = link_id
    remaining = ends.pop(JobStatus.PENDING.value, 0)
    chain = replace(chain, remaining=remaining, total=remaining + ends.total(), counts=dict(ends))
    if chain.head is None and first_pending is not None:
        chain = replace(chain, head=first_pending, head_ready_at=now, resends=0)
    return chain


def _chain_from_jobs(write: Transaction, job: JobRecord) -> HostChain:
    """The chain that the dispatch of this job's host did not come to put."""
    started_at = _stored_run(write, job.run_id).started_at
    empty = HostChain(run_id=job.run_id, host=job.host, head=None, head_ready_at=started_at, remaining=0, total=0)
    return _agreeing(write, empty, started_at)
