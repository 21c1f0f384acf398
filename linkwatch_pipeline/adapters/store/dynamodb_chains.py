"""Jobs and host chains of runs in DynamoDB (`ports.RunStore`; the runs themselves are in `dynamodb_runs`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from itertools import islice

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    CHAIN,
    HOST_LIST,
    JOB,
    Item,
    chain_key,
    decode,
    encode,
    entry,
    host_entry_key,
    host_key,
    job_key,
    run_key,
    split_host_entry,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_runs import stored_run
from linkwatch_pipeline.adapters.store.dynamodb_table import MOST_IN_GET, DynamoTable, Put, chunks
from linkwatch_pipeline.adapters.store.rows import CHAINS, HOSTS, JOBS
from linkwatch_pipeline.domain import recording
from linkwatch_pipeline.domain.errors import NotFound
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import DEFER_SLACK, HostChain, JobRecord, JobStatus, work_order

# A run with more jobs is not sorted in memory but read host by host, which costs a read for every link there is.
SORTED_IN_MEMORY = 50_000


class DynamoChains:
    """Jobs and chains."""

    _table: DynamoTable

    def put_jobs(self, jobs: Sequence[JobRecord]) -> None:
        for chunk in chunks(jobs, MOST_IN_GET):
            self._make_findable(chunk)
            there = self._table.get_many(job_key(job.run_id, job.link_id) for job in chunk)
            for job in chunk:
                if (key := job_key(job.run_id, job.link_id)) not in there:
                    self._table.put_if_absent(encode(JOBS, job, key))

    def put_chain(self, chain: HostChain) -> bool:
        return self._table.put_if_absent(encode(CHAINS, chain, chain_key(chain.run_id, chain.host)))

    def get_job(self, run_id: str, link_id: str) -> JobRecord | None:
        return self._read_job(run_id, link_id)[0]

    def jobs(self, run_id: str, *, host: str | None = None) -> Iterator[JobRecord]:
        if host is not None:
            return self._jobs_found_by(run_id, self._table.query(HOST_LIST, prefix=f"{host}#"))
        found = (decode(JOBS, item) for item in self._table.query(run_key(run_id)[0], prefix=JOB))
        few = list(islice(found, SORTED_IN_MEMORY + 1))
        if len(few) > SORTED_IN_MEMORY:
            return self._jobs_found_by(run_id, self._table.query(HOST_LIST))
        return iter(sorted(few, key=lambda job: (job.host, job.link_id)))

    def get_chain(self, run_id: str, host: str) -> HostChain | None:
        return self._read_chain(run_id, host)[0]

    def chains(self, run_id: str) -> Iterator[HostChain]:
        return (decode(CHAINS, item) for item in self._table.query(run_key(run_id)[0], prefix=CHAIN))

    def longest_chains(self, run_id: str, *, limit: int, ready_by: datetime | None = None) -> Sequence[HostChain]:
        # No index has this order: all chains of the run are read and `limit` of them kept.
        chains = (chain for chain in self.chains(run_id) if chain.remaining)
        ready = (chain for chain in chains if ready_by is None or chain.head_ready_at <= ready_by)
        return nsmallest(limit, ready, key=work_order)

    def end_job(self, job: JobRecord, *, status: JobStatus, reason: Reason) -> HostChain | None:
        def attempt() -> HostChain | None:
            stored, item = self._read_job(job.run_id, job.link_id)
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
            stored, _ = self._read_job(job.run_id, job.link_id)
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
            chain, item = self._read_chain(job.run_id, job.host)
            if chain is None or chain.head != job.link_id or chain.head_ready_at > now + DEFER_SLACK:
                return False
            self._table.write([_chain_put(replace(chain, head_ready_at=until), item)])
            return True

        return self._table.patience.until_undisturbed(attempt)

    def count_deferral(self, job: JobRecord) -> int:
        def attempt() -> int:
            stored, item = self._read_job(job.run_id, job.link_id)
            if stored is None:
                raise NotFound(f"run {job.run_id} has no job for link {job.link_id!r}.")
            if stored.status is JobStatus.PENDING:
                stored = replace(stored, deferrals=stored.deferrals + 1)
                self._table.write([_job_put(stored, item)])
            return stored.deferrals

        return self._table.patience.until_undisturbed(attempt)

    def resend_head(self, chain: HostChain, *, now: datetime) -> bool:
        def attempt() -> bool:
            stored, item = self._read_chain(chain.run_id, chain.host)
            if stored is None or stored.head is None or _sending(stored) != _sending(chain):
                return False
            self._table.write([_chain_put(replace(stored, resends=stored.resends + 1, head_ready_at=now), item)])
            return True

        return self._table.patience.until_undisturbed(attempt)

    def claim_start(self, chain: HostChain, *, ready_at: datetime, now: datetime) -> bool:
        def attempt() -> bool:
            stored, item = self._read_chain(chain.run_id, chain.host)
            if stored is None or stored.head is None or _sending(stored) != _sending(chain):
                return False
            if stored.planned_sent_at is not None:
                return False
            self._table.write([_chain_put(replace(stored, planned_sent_at=now, head_ready_at=ready_at), item)])
            return True

        return self._table.patience.until_undisturbed(attempt)

    def rechain(self, run_id: str, host: str, *, now: datetime) -> HostChain | None:
        def attempt() -> HostChain | None:
            chain, item = self._read_chain(run_id, host)
            mended = self._agreeing(chain, now) if chain is not None else None
            if mended is None or mended == chain:
                return None
            self._table.write([_chain_put(mended, item)])
            return mended

        return self._table.patience.until_undisturbed(attempt)

    def _read_job(self, run_id: str, link_id: str) -> tuple[JobRecord | None, Item | None]:
        item = self._table.get(job_key(run_id, link_id))
        return (decode(JOBS, item) if item is not None else None), item

    def _read_chain(self, run_id: str, host: str) -> tuple[HostChain | None, Item | None]:
        item = self._table.get(chain_key(run_id, host))
        return (decode(CHAINS, item) if item is not None else None), item

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
        started_at = stored_run(self._table, job.run_id)[1].started_at
        empty = HostChain(run_id=job.run_id, host=job.host, head=None, head_ready_at=started_at, remaining=0, total=0)
        return self._agreeing(empty, started_at)


def chain_and_next_allowed(table: DynamoTable, run_id: str, host: str) -> tuple[Item | None, datetime | None]:
    """A host's chain in a run, and when the host may next be visited."""
    items = table.get_many([chain_key(run_id, host), host_key(host)])
    record = items.get(host_key(host))
    allowed_at = decode(HOSTS, record).next_allowed_at if record is not None else None
    return items.get(chain_key(run_id, host)), allowed_at


def _job_put(job: JobRecord, was: Item | None) -> Put:
    return Put(encode(JOBS, job, job_key(job.run_id, job.link_id)), was)


def _chain_put(chain: HostChain, was: Item | None) -> Put:
    return Put(encode(CHAINS, chain, chain_key(chain.run_id, chain.host)), was)


def _sending(chain: HostChain) -> tuple[str | None, datetime, int]:
    return chain.head, chain.head_ready_at, chain.resends
