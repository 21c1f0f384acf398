"""Host admission: one visitor at a time, a pause after each visit, longer pauses when the host asks (SPEC 8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

LEASE_FOR = timedelta(seconds=60)
WORKER_LIFE = timedelta(seconds=30)
COOLDOWN = timedelta(seconds=1)
# A deferred head comes back at most this late for a held lease, since the holder usually leaves long before it expires.
HELD_RECHECK = timedelta(seconds=12)
LONGEST_DEFERRAL = timedelta(seconds=900)
BACKOFF_BASE = timedelta(seconds=30)
BACKOFF_FLOOR = timedelta(seconds=1)
BACKOFF_CEILING = timedelta(seconds=900)
_HIGHEST_USEFUL_LEVEL = 16


class Chance(Protocol):
    """Where chance comes from: `random.Random` fits."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...


class DeferralReason(StrEnum):
    """Why a visit has to wait."""

    HELD = "held"  # somebody is visiting
    COOLING = "cooling"  # the host's next allowed time is not reached


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """What is remembered about a host for ever. All times UTC; None means never.

    `owner_token` and `job_id` name the visitor, or are None. `backoff_level` counts pauses in a row.
    """

    host: str
    owner_token: str | None = None
    job_id: str | None = None
    lease_until: datetime | None = None
    next_allowed_at: datetime | None = None
    backoff_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The visit may begin; `record` is what to store. `died_job_id` names the job of a visitor that never left."""

    record: HostRecord
    died_job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """The visit may be asked for again at `until`."""

    until: datetime
    reason: DeferralReason


def admit(
    record: HostRecord,
    *,
    token: str,
    job_id: str,
    now: datetime,
    skew: timedelta = timedelta(0),
) -> Admitted | Deferred:
    """Whether a visitor may enter now.

    Args:
        token: the visitor's owner token, unique to the visit.
        skew: how far the clocks of other workers may differ from ours; added to times that others wrote.
    """
    if record.owner_token is not None and record.lease_until is not None and now < record.lease_until + skew:
        return Deferred(
            until=min(record.lease_until + skew, now + HELD_RECHECK),
            reason=DeferralReason.HELD,
        )
    if record.next_allowed_at is not None and now < record.next_allowed_at + skew:
        until = min(record.next_allowed_at + skew, now + LONGEST_DEFERRAL)
        return Deferred(until=until, reason=DeferralReason.COOLING)
    entered = replace(record, owner_token=token, job_id=job_id, lease_until=now + LEASE_FOR)
    return Admitted(
        record=entered,
        died_job_id=record.job_id if record.owner_token is not None else None,
    )


def pausing_until(record: HostRecord, *, now: datetime, skew: timedelta) -> datetime | None:
    """Until when a host asked to be left alone, at most 900 s from now; None if it did not, or not any more."""
    if not record.backoff_level or record.next_allowed_at is None or now >= record.next_allowed_at + skew:
        return None
    return min(record.next_allowed_at + skew, now + LONGEST_DEFERRAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """How a visit ended, as far as the host's pause is concerned.

    `answered` is whether any HTTP status came; `asked_to_pause` whether it was a 429, or a 403 or 503 with Retry-After
    or spent rate-limit headers; `retry_after` the clamped wait, None when none was readable.
    """

    at: datetime
    answered: bool
    asked_to_pause: bool = False
    retry_after: timedelta | None = None


def leave(record: HostRecord, departure: Departure, *, cooldown: timedelta, chance: Chance) -> HostRecord:
    """The host's record after its visitor left: no visitor, a next allowed time, the backoff level kept or reset."""
    level = record.backoff_level
    pause = cooldown
    if departure.asked_to_pause:
        pause = max(cooldown, departure.retry_after or backoff(level, chance))
        level += 1
    elif departure.answered:
        level = 0
    return replace(
        record,
        owner_token=None,
        job_id=None,
        lease_until=None,
        next_allowed_at=max(departure.at + pause, record.next_allowed_at or departure.at),
        backoff_level=level,
    )


def backoff(level: int, chance: Chance) -> timedelta:
    """Capped exponential backoff with full jitter: up to 30 s x 2^level, clamped to 1-900 s after the jitter."""
    ceiling = BACKOFF_BASE * (1 << min(level, _HIGHEST_USEFUL_LEVEL))
    return min(max(ceiling * chance.random(), BACKOFF_FLOOR), BACKOFF_CEILING)
