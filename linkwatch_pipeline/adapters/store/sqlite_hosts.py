"""Host admission in SQLite (`ports.HostStore`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from linkwatch_pipeline.adapters.store.rows import HOSTS
from linkwatch_pipeline.adapters.store.sqlite_database import Database
from linkwatch_pipeline.adapters.store.sqlite_transactions import Transaction
from linkwatch_pipeline.domain.hosts import Admitted, Chance, Deferred, Departure, HostRecord, admit, leave
from linkwatch_pipeline.domain.runs import JobStatus, split_job_id


class SqliteHosts:
    """Host records."""

    _database: Database

    def acquire_host(
        self, host: str, *, token: str, job_id: str, now: datetime, skew: timedelta
    ) -> Admitted | Deferred:
        with self._database.transaction() as write:
            record = write.get(HOSTS, host)
            answer = admit(record or HostRecord(host=host), token=token, job_id=job_id, now=now, skew=skew)
            if isinstance(answer, Admitted):
                if record is None:
                    write.insert(HOSTS, answer.record)
                else:
                    write.update(HOSTS, answer.record)
                if answer.died_job_id is not None:
                    _count_death(write, answer.died_job_id)
            return answer

    def release_host(
        self,
        host: str,
        *,
        token: str,
        departure: Departure,
        cooldown: timedelta,
        chance: Chance,
    ) -> HostRecord | None:
        with self._database.transaction() as write:
            record = write.get(HOSTS, host)
            if record is None or record.owner_token != token:
                return None
            left = leave(record, departure, cooldown=cooldown, chance=chance)
            write.update(HOSTS, left)
            return left

    def void_leases(self, *, token_prefix: str, now: datetime, cooldown: timedelta) -> int:
        departure = Departure(at=now, answered=False)
        with self._database.transaction() as write:
            # Once a start: reading every host is cheaper than an index that each admission and release would write.
            held = write.rows(
                f"{HOSTS.select} WHERE substr(owner_token, 1, length(?)) = ?", (token_prefix, token_prefix)
            )
            for row in held:
                write.update(HOSTS, leave(HOSTS.decode(row), departure, cooldown=cooldown, chance=_NoLot()))
            return len(held)

    def get_host(self, host: str) -> HostRecord | None:
        return self._database.get(HOSTS, host)

    def hosts(self) -> Iterator[HostRecord]:
        return self._database.stream(HOSTS, order=("host",))


class _NoLot:
    """A visitor that left without an answer was not asked to pause, so no lot is drawn."""

    def random(self) -> float:
        raise AssertionError("no lot is drawn for a voided lease")


def _count_death(write: Transaction, job_id: str) -> None:
    run_id, link_id = split_job_id(job_id)
    if run_id is not None:
        write.execute(
            "UPDATE jobs SET deaths = deaths + 1 WHERE run_id = ? AND link_id = ? AND status = ?",
            (run_id, link_id, JobStatus.PENDING.value),
        )
