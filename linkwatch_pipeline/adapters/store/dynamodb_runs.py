"""Runs, their jobs and their host chains in DynamoDB (`ports.RunStore`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    CHAIN,
    HOST_LIST,
    JOB,
    OVER,
    RUN_LIST,
    Item,
    chain_key,
    decode,
    encode,
    entry,
    host_entry_key,
    host_key,
    job_key,
    key_of,
    link_key,
    link_of,
    number,
    run_key,
    split_host_entry,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_journal import Journal, is_marked
from linkwatch_pipeline.adapters.store.dynamodb_parts import LinkParts
from linkwatch_pipeline.adapters.store.dynamodb_table import MOST_IN_GET, DynamoTable, Entry, Put, chunks
from linkwatch_pipeline.adapters.store.rows import CHAINS, HOSTS, JOBS, RUNS
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
    Run,
    RunCounts,
    RunState,
)

# A run with more jobs is not sorted in memory but read host by host, which costs a read for every link there is.
SORTED_IN_MEMORY = 50_000


class DynamoRuns:
    """Runs, jobs and chains."""

    _table: DynamoTable
    _journal: Journal
    _parts: LinkParts

    def create_run(self, run: Run) -> Run:
        # The entry first: one that leads nowhere is passed by, a run that nothing leads to would be forgotten.
        self._table.put_if_absent(entry((RUN_LIST, run.run_id)))
        if not self._table.put_if_absent(encode(RUNS, run, run_key(run.run_id))):
            return self._stored_run(run.run_id)[1]
        if run.state.is_over:
            self._table.put_many([run_entry(run)])
        return run

    def get_run(self, run_id: str) -> Run | None:
        item = self._table.get(run_key(run_id))
        return decode(RUNS, item) if item is not None else None

    def runs(self, *, open_only: bool = False) -> Iterator[Run]:
        entries = (item for item in self._table.query(RUN_LIST) if not (open_only and OVER in item))
        for chunk in chunks(entries, MOST_IN_GET):
            keys = [run_key(item["sk"]["S"]) for item in chunk]
            items = self._table.get_many(keys)
            for run in (decode(RUNS, items[key]) for key in keys if key in items):
                if not (open_only and run.state.is_over):
                    yield run

    def allocate(self, links: Sequence[Link], slot: AllocationSlot, run_id: str) -> list[Allocation | None]:
        allocated: list[Allocation | None] = []
        for chunk in chunks(links, MOST_IN_GET):
            items = self._table.get_many(link_key(link.id) for link in chunk)
            for link in chunk:
                allocated.append(self._allocate(link, slot, run_id, items.get(link_key(link.id))))
        return allocated

    def put_jobs(self, jobs: Sequence[JobRecord]) -> None:
        for chunk in chunks(jobs, MOST_IN_GET):
            self._make_findable(chunk)
            there = self._table.get_many(job_key(job.run_id, job.link_id) for job in chunk)
            for job in chunk:
                if (key := job_key(job.run_id, job.link_id)) not in there:
                    self._table.put_if_absent(encode(JOBS, job, key))

    def put_chain(self, chain: HostChain) -> bool:
        return self._table.put_if_absent(encode(CHAINS, chain, chain_key(chain.run_id, chain.host)))

    def save_dispatch_progress(self, run_id: str, *, cursor: str, dispatched: int) -> None:
        def attempt() -> None:
            item = self._table.get(run_key(run_id))
            run = decode(RUNS, item) if item is not None else None
            if run is None or run.state is not RunState.DISPATCHING or (run.cursor or "") >= cursor:
                return
            self._replace_run(replace(run, cursor=cursor, dispatched=max(run.dispatched, dispatched)), item)

        self._table.patience.until_undisturbed(attempt)

    def finish_dispatch(self, run_id: str, *, expected: int, at: datetime) -> Run:
        def attempt() -> Run:
            item, run = self._stored_run(run_id)
            if run.state is RunState.DISPATCHING:
                run = replace(run, state=RunState.OPEN, expected=expected, dispatched=expected, dispatched_at=at)
                self._replace_run(run, item)
            return run

        return self._table.patience.until_undisturbed(attempt)

    def get_job(self, run_id: str, link_id: str) -> JobRecord | None:
        item = self._table.get(job_key(run_id, link_id))
        return decode(JOBS, item) if item is not None else None

    def jobs(self, run_id: str, *, host: str | None = None) -> Iterator[JobRecord]:
        if host is not None:
            return self._jobs_found_by(run_id, self._table.query(HOST_LIST, prefix=f"{host}#"))
        found = (decode(JOBS, item) for item in self._table.query(run_key(run_id)[0], prefix=JOB))
        few = list(islice(found, SORTED_IN_MEMORY + 1))
        if len(few) > SORTED_IN_MEMORY:
            return self._jobs_found_by(run_id, self._table.query(HOST_LIST))
        return iter(sorted(few, key=lambda job: (job.host, job.link_id)))

    def get_chain(self, run_id: str, host: str) -> HostChain | None:
        item = self._table.get(chain_key(run_id, host))
        return decode(CHAINS, item) if item is not None else None

    def chains(self, run_id: str) -> Iterator[HostChain]:
        return (decode(CHAINS, item) for item in self._table.query(run_key(run_id)[0], prefix=CHAIN))

    def end_job(self, job: JobRecord, *, status: JobStatus, reason: Reason) -> HostChain | None:
        def attempt() -> HostChain | None:
            stored, item = self._read_job(job)
            if stored is None or stored.status.is_terminal:
                return None
            chain_item, allowed_at = chain_and_next_allowed(self._table, stored.run_id, stored.host)
            # Without a chain its dispatch ended between jobs and chain, and the run is given up: counted all the same.
            chain = decode(CHAINS, chain_item) if chain_item is not None else self._chain_from_jobs(stored)
            ended, after = recording.end_job(stored, chain, status=status, reason=reason, next_allowed_at=allowed_at)
            self._table.transact([_job_put(ended, item), _chain_put(after, chain_item)])
            return after

        return self._table.patience.until_undisturbed(attempt)

    def step_chain(self, job: JobRecord) -> HostChain | None:
        def attempt() -> HostChain | None:
            stored, _ = self._read_job(job)
            chain_item, allowed_at = chain_and_next_allowed(self._table, job.run_id, job.host)
            chain = decode(CHAINS, chain_item) if chain_item is not None else None
            if stored is None or chain is None or not stored.status.is_terminal or chain.head != stored.link_id:
                return None
            after = recording.step_head(chain, stored, allowed_at)
            self._table.write([_chain_put(after, chain_item)])
            return after

        return self._table.patience.until_undisturbed(attempt)

    def defer_head(self, job: JobRecord, *, until: datetime, now: datetime) -> bool:
        def attempt() -> bool:
            item = self._table.get(chain_key(job.run_id, job.host))
            chain = decode(CHAINS, item) if item is not None else None
            if chain is None or chain.head != job.link_id or chain.head_ready_at > now + DEFER_SLACK:
                return False
            self._table.write([_chain_put(replace(chain, head_ready_at=until), item)])
            return True

        return self._table.patience.until_undisturbed(attempt)

    def count_deferral(self, job: JobRecord) -> int:
        def attempt() -> int:
            stored, item = self._read_job(job)
            if stored is None:
                raise NotFound(f"run {job.run_id} has no job for link {job.link_id!r}.")
            if stored.status is JobStatus.PENDING:
                stored = replace(stored, deferrals=stored.deferrals + 1)
                self._table.write([_job_put(stored, item)])
            return stored.deferrals

        return self._table.patience.until_undisturbed(attempt)

    def resend_head(self, chain: HostChain, *, now: datetime) -> bool:
        def attempt() -> bool:
            item = self._table.get(chain_key(chain.run_id, chain.host))
            stored = decode(CHAINS, item) if item is not None else None
            if stored is None or stored.head is None or _sending(stored) != _sending(chain):
                return False
            self._table.write([_chain_put(replace(stored, resends=stored.resends + 1, head_ready_at=now), item)])
            return True

        return self._table.patience.until_undisturbed(attempt)

    def claim_start(self, chain: HostChain, *, ready_at: datetime, now: datetime) -> bool:
        def attempt() -> bool:
            item = self._table.get(chain_key(chain.run_id, chain.host))
            stored = decode(CHAINS, item) if item is not None else None
            if stored is None or stored.head is None or _sending(stored) != _sending(chain):
                return False
            if stored.planned_sent_at is not None:
                return False
            self._table.write([_chain_put(replace(stored, planned_sent_at=now, head_ready_at=ready_at), item)])
            return True

        return self._table.patience.until_undisturbed(attempt)

    def rechain(self, run_id: str, host: str, *, now: datetime) -> HostChain | None:
        def attempt() -> HostChain | None:
            item = self._table.get(chain_key(run_id, host))
            if item is None:
                return None
            chain = decode(CHAINS, item)
            mended = self._agreeing(chain, now)
            if mended == chain:
                return None
            self._table.write([_chain_put(mended, item)])
            return mended

        return self._table.patience.until_undisturbed(attempt)

    def close_run(self, run_id: str, *, totals: RunCounts, at: datetime) -> Run:
        def attempt() -> Run:
            item, run = self._stored_run(run_id)
            if not run.state.is_over:
                run = replace(run, state=RunState.CLOSED, totals=totals, closed_at=at)
                put = Put(encode(RUNS, run, run_key(run_id)), item)
                self._table.transact([put, Entry(run_entry(run))])
            return run

        return self._table.patience.until_undisturbed(attempt)

    def rule_on_run(self, run_id: str, ruling: Ruling, *, replaces: Ruling | None) -> bool:
        def attempt() -> bool:
            item, run = self._stored_run(run_id)
            if run.ruling != replaces:
                return False
            self._replace_run(replace(run, ruling=ruling), item)
            return True

        return self._table.patience.until_undisturbed(attempt)

    def prune_runs(self, *, started_before: datetime) -> int:
        over = (run for run in self.runs() if run.state.is_over and not run.is_held)
        old = [run for run in over if run.started_at < started_before]
        for run in old:
            pk, meta = run_key(run.run_id)
            # The summary last: a run whose pruning was interrupted is found again.
            self._table.delete_many(key for item in self._table.query(pk) if (key := key_of(item)) != (pk, meta))
            self._table.delete_many([(pk, meta)])
            self._table.delete_many([(RUN_LIST, run.run_id)])
        return len(old)

    def _stored_run(self, run_id: str) -> tuple[Item, Run]:
        item = self._table.get(run_key(run_id))
        if item is None:
            raise NotFound(f"there is no run {run_id}.")
        return item, decode(RUNS, item)

    def _replace_run(self, run: Run, was: Item | None) -> None:
        self._table.put(encode(RUNS, run, run_key(run.run_id)), was=was)

    def _read_job(self, job: JobRecord) -> tuple[JobRecord | None, Item | None]:
        item = self._table.get(job_key(job.run_id, job.link_id))
        return (decode(JOBS, item) if item is not None else None), item

    def _allocate(self, link: Link, slot: AllocationSlot, run_id: str, read: Item | None) -> Allocation | None:
        begun = [read]  # what the batch found, for the first attempt

        def attempt() -> Allocation | None:
            item = begun.pop() if begun else self._journal.settled(link_key(link.id))
            if item is not None and is_marked(item):
                item = self._journal.settled(link_key(link.id))
            if item is None:
                return None
            allocation, changed = _allocation(link_of(item), link, slot, run_id)
            if changed is not None:
                self._table.put(self._parts.item_with_state(changed, item), was=item)
            return allocation

        return self._table.patience.until_undisturbed(attempt)

    def _make_findable(self, jobs: Sequence[JobRecord]) -> None:
        """Every job has to be found by its host. A link that was ever on that host has left an entry there already."""
        keys = [host_entry_key(job.host, job.link_id) for job in jobs]
        there = self._table.get_many(keys)
        self._table.put_many(entry(key) for key in dict.fromkeys(keys) if key not in there)

    def _jobs_found_by(self, run_id: str, entries: Iterable[Item]) -> Iterator[JobRecord]:
        for chunk in chunks((split_host_entry(item) for item in entries), MOST_IN_GET):
            items = self._table.get_many(job_key(run_id, link_id) for _, link_id in chunk)
            for host, link_id in chunk:
                if (item := items.get(job_key(run_id, link_id))) is not None and text_of(item, "host") == host:
                    yield decode(JOBS, item)

    def _agreeing(self, chain: HostChain, now: datetime) -> HostChain:
        """The chain as its jobs say it has to be; a head that is set stays."""
        ends: Counter[str] = Counter()
        first_pending: str | None = None
        for job in self.jobs(chain.run_id, host=chain.host):
            ends[job.outcome or job.status] += 1
            if job.status is JobStatus.PENDING and first_pending is None:
                first_pending = job.link_id
        remaining = ends.pop(JobStatus.PENDING, 0)
        counts = {str(end): count for end, count in ends.items()}
        chain = replace(chain, remaining=remaining, total=remaining + ends.total(), counts=counts)
        if chain.head is None and first_pending is not None:
            chain = replace(chain, head=first_pending, head_ready_at=now, resends=0)
        return chain

    def _chain_from_jobs(self, job: JobRecord) -> HostChain:
        """The chain that the dispatch of this job's host did not come to put."""
        started_at = self._stored_run(job.run_id)[1].started_at
        empty = HostChain(run_id=job.run_id, host=job.host, head=None, head_ready_at=started_at, remaining=0, total=0)
        return self._agreeing(empty, started_at)


def chain_and_next_allowed(table: DynamoTable, run_id: str, host: str) -> tuple[Item | None, datetime | None]:
    """A host's chain in a run, and when the host may next be visited."""
    items = table.get_many([chain_key(run_id, host), host_key(host)])
    record = items.get(host_key(host))
    allowed_at = decode(HOSTS, record).next_allowed_at if record is not None else None
    return items.get(chain_key(run_id, host)), allowed_at


def run_entry(run: Run) -> Item:
    """Leads to a run; says when it is over, so that ticks pass it by."""
    return {**entry((RUN_LIST, run.run_id)), **({OVER: number(1)} if run.state.is_over else {})}


def _job_put(job: JobRecord, was: Item | None) -> Put:
    return Put(encode(JOBS, job, job_key(job.run_id, job.link_id)), was)


def _chain_put(chain: HostChain, was: Item | None) -> Put:
    return Put(encode(CHAINS, chain, chain_key(chain.run_id, chain.host)), was)


def _sending(chain: HostChain) -> tuple[str | None, datetime, int]:
    return chain.head, chain.head_ready_at, chain.resends


def _allocation(stored: Link, link: Link, slot: AllocationSlot, run_id: str) -> tuple[Allocation | None, Link | None]:
    """The sequence that the run gets for the stored link, and the link to write for it, None if it holds it already."""
    held = stored.allocations.get(slot)
    if held is not None and held.run_id == run_id:
        return held, None
    if _configured(stored) != _configured(link):
        return None, None
    allocation = Allocation(
        run_id=run_id,
        sequence=stored.highest_sequence + 1,
        host=stored.host,
        config_version=stored.config_version,
    )
    return allocation, replace(stored, allocations={**stored.allocations, slot: allocation})


def _configured(link: Link) -> tuple[str, int, datetime | None]:
    return link.url, link.config_version, link.retired_at
