"""Host admission in DynamoDB (`ports.HostStore`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    LEASE,
    Item,
    decode,
    encode,
    host_key,
    job_key,
    text,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable, Operation, Put
from linkwatch_pipeline.adapters.store.rows import HOSTS, JOBS
from linkwatch_pipeline.domain.hosts import Admitted, Chance, Deferred, Departure, HostRecord, admit, leave
from linkwatch_pipeline.domain.runs import JobStatus, split_job_id

_LEASES = "sk = :lease AND begins_with(pk, :host)"  # a run's chain of a host has another pk
_HELD = f"{_LEASES} AND begins_with(owner_token, :prefix)"


class DynamoHosts:
    """Host records."""

    _table: DynamoTable

    def acquire_host(
        self, host: str, *, token: str, job_id: str, now: datetime, skew: timedelta
    ) -> Admitted | Deferred:
        def attempt() -> Admitted | Deferred:
            item = self._table.get(host_key(host))
            record = decode(HOSTS, item) if item is not None else HostRecord(host=host)
            answer = admit(record, token=token, job_id=job_id, now=now, skew=skew)
            if isinstance(answer, Admitted):
                entered = Put(encode(HOSTS, answer.record, host_key(host)), item)
                self._table.write([entered, *self._count_death(answer.died_job_id)])
            return answer

        return self._table.patience.until_undisturbed(attempt)

    def release_host(
        self,
        host: str,
        *,
        token: str,
        departure: Departure,
        cooldown: timedelta,
        chance: Chance,
    ) -> HostRecord | None:
        def attempt() -> HostRecord | None:
            item = self._table.get(host_key(host))
            if item is None or item.get("owner_token") != text(token):
                return None
            left = leave(decode(HOSTS, item), departure, cooldown=cooldown, chance=chance)
            self._table.put(encode(HOSTS, left, host_key(host)), was=item)
            return left

        return self._table.patience.until_undisturbed(attempt)

    def void_leases(self, *, token_prefix: str, now: datetime, cooldown: timedelta) -> int:
        # Once after the death of a process: reading the whole table is cheaper than an index written by each admission.
        values = {":prefix": text(token_prefix), **_LEASE_VALUES}
        held = [decode(HOSTS, item) for item in self._table.scan(_HELD, values)]
        departure = Departure(at=now, answered=False)
        ended = [
            self.release_host(
                record.host, token=record.owner_token, departure=departure, cooldown=cooldown, chance=_NoLot()
            )
            for record in held
            if record.owner_token is not None
        ]
        return sum(left is not None for left in ended)

    def get_host(self, host: str) -> HostRecord | None:
        item = self._table.get(host_key(host))
        return decode(HOSTS, item) if item is not None else None

    def hosts(self) -> Iterator[HostRecord]:
        records = (decode(HOSTS, item) for item in self._table.scan(_LEASES, _LEASE_VALUES))
        return iter(sorted(records, key=lambda record: record.host))

    def _count_death(self, died_job_id: str | None) -> list[Operation]:
        """What counts the death of a visitor that never left, if its job is still pending."""
        run_id, link_id = split_job_id(died_job_id) if died_job_id is not None else (None, "")
        item = self._table.get(job_key(run_id, link_id)) if run_id is not None else None
        if item is None or text_of(item, "status") != JobStatus.PENDING:
            return []
        return [Put(_with_one_more_death(item), item)]


_LEASE_VALUES = {":lease": text(LEASE), ":host": text("HOST#")}


def _with_one_more_death(item: Item) -> Item:
    job = decode(JOBS, item)
    return encode(JOBS, replace(job, deaths=job.deaths + 1), job_key(job.run_id, job.link_id))


class _NoLot:
    """A visitor that left without an answer was not asked to pause, so no lot is drawn."""

    def random(self) -> float:
        raise AssertionError("no lot is drawn for a voided lease")
