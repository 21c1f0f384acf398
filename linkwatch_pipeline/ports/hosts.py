"""The store's role as doorkeeper: who may visit a host, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from linkwatch_pipeline.domain.hosts import Admitted, Chance, Deferred, Departure, HostRecord


class HostStore(Protocol):
    """Host admission."""

    def acquire_host(
        self, host: str, *, token: str, job_id: str, now: datetime, skew: timedelta
    ) -> Admitted | Deferred:
        """Admit one visitor (`domain.hosts.admit`), conditionally. Counts a death of the job whose visitor never left,
        if that job is still pending, in the same transaction."""
        ...

    def release_host(
        self,
        host: str,
        *,
        token: str,
        departure: Departure,
        cooldown: timedelta,
        chance: Chance,
    ) -> HostRecord | None:
        """Let the visitor out (`domain.hosts.leave`); the record, None if the token does not hold the host any more."""
        ...

    def void_leases(self, *, token_prefix: str, now: datetime, cooldown: timedelta) -> int:
        """End every lease whose token begins so, as if its visitor left now without an answer; how many.

        For a laptop, where a lock proves that the process is dead. No death is counted.
        """
        ...

    def get_host(self, host: str) -> HostRecord | None: ...

    def hosts(self) -> Iterator[HostRecord]:
        """All host records in host order. For moving them; may read everything that is stored."""
        ...
