"""The store's role for runs, their jobs and host chains; and who is told while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, JobStatus, Ruling, Run, RunCounts
from linkwatch_pipeline.ports.damaged import Damaged


class RunStore(Protocol):
    """Runs, their jobs and their host chains."""

    def create_run(self, run: Run) -> Run:
        """Put the run if it is absent or `domain.runs.gives_way` to it; the stored one either way."""
        ...

    def get_run(self, run_id: str) -> Run | None: ...

    def runs(self, *, open_only: bool = False, damaged: Damaged | None = None) -> Iterator[Run]:
        """Runs in run id order (which is time order); `open_only` leaves out those that are over (closed, missed).

        Args: damaged: as in `ports.damaged`; its key is the id of the run.
        """
        ...

    def allocate(self, links: Sequence[Link], slot: AllocationSlot, run_id: str) -> list[Allocation | None]:
        """The run's sequence for each link: the one it already holds in its slot, else the link's highest plus one.

        Each is a conditional write of its own (a store may commit them together). None where the stored link's url,
        config_version or retirement is not as in `links` any more and it holds no sequence of this run: look again; and
        where none is left (`domain.sequences`).
        """
        ...

    def put_jobs(self, jobs: Sequence[JobRecord]) -> None:
        """Put, in the given order, each job that is absent; those already there stay as they are."""
        ...

    def put_chain(self, chain: HostChain) -> bool:
        """Put the chain if it is absent; whether it was."""
        ...

    def save_dispatch_progress(self, run_id: str, *, cursor: str, dispatched: int) -> None:
        """Remember the last host whose chain is complete, while the run is dispatching. Never moves backwards."""
        ...

    def finish_dispatch(self, run_id: str, *, expected: int, at: datetime) -> Run:
        """Every job exists: `dispatching` becomes `open`. Repeating it changes nothing."""
        ...

    def get_job(self, run_id: str, link_id: str) -> JobRecord | None: ...

    def jobs(self, run_id: str, *, host: str | None = None) -> Iterator[JobRecord]:
        """A run's jobs in (host, link id) order, or one host's in link id order."""
        ...

    def get_chain(self, run_id: str, host: str) -> HostChain | None: ...

    def chains(self, run_id: str) -> Iterator[HostChain]:
        """A run's chains in host order."""
        ...

    def longest_chains(self, run_id: str, *, limit: int, ready_by: datetime | None = None) -> Sequence[HostChain]:
        """At most `limit` chains with jobs left, those with the most first, then in host order (`runs.work_order`).

        Args: ready_by: leaves out those whose head is ready later.
        """
        ...

    def end_job(self, job: JobRecord, *, status: JobStatus, reason: Reason) -> HostChain | None:
        """End a pending job without an observation, count it and move its chain on, in one transaction.

        Returns: the chain afterwards, None if the job was not pending any more (nothing is written).
        """
        ...

    def step_chain(self, job: JobRecord) -> HostChain | None:
        """Move the head past a terminal job that is still the head; counters stay. None if it is not the head."""
        ...

    def defer_head(self, job: JobRecord, *, until: datetime, now: datetime) -> bool:
        """Set the head's ready time if the job is still the head and was due (head_ready_at <= now + 2 s).

        Returns: whether the caller is the one to send the head's next message.
        """
        ...

    def count_deferral(self, job: JobRecord) -> int:
        """Count one deferral of a pending job for a busy redirect host; the count afterwards."""
        ...

    def resend_head(self, chain: HostChain, *, now: datetime) -> bool:
        """Claim the right to send a lost head again: resends + 1 and head_ready_at = now, if the chain is as read."""
        ...

    def claim_start(self, chain: HostChain, *, ready_at: datetime, now: datetime) -> bool:
        """Claim the right to send a chain's first head: planned_sent_at = now and head_ready_at = `ready_at`.

        Only if the chain is as read (head, head_ready_at, resends) and nobody claimed it before.
        """
        ...

    def rechain(self, run_id: str, host: str, *, now: datetime) -> HostChain | None:
        """Make a chain agree with its jobs again; None if there is nothing to mend.

        An empty head points at the first pending job, `remaining` and `total` count the pending and all jobs.
        """
        ...

    def close_run(self, run_id: str, *, totals: RunCounts, at: datetime) -> Run:
        """Write the totals once and close the run. Repeating it changes nothing."""
        ...

    def rule_on_run(self, run_id: str, ruling: Ruling, *, replaces: Ruling | None) -> bool:
        """Write what was decided about a run's notices, if `replaces` is what was decided before; whether it was."""
        ...

    def prune_runs(self, *, started_before: datetime) -> int:
        """Forget jobs, chains and summaries of closed runs started before then, except held ones; how many runs."""
        ...


class Progress(Protocol):
    """Told what happens while a run goes on, for people who watch."""

    def job_ended(self, job: JobRecord, end: str) -> None: ...

    def note(self, text: str) -> None: ...
