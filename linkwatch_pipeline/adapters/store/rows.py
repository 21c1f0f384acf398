"""The tables of a store: which record each holds, by what a row is known, and how its fields are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from linkwatch_pipeline.adapters.store.table import Converter, Table
from linkwatch_pipeline.domain.hosts import HostRecord
from linkwatch_pipeline.domain.json_text import read_json
from linkwatch_pipeline.domain.links import (
    LONG_FIELDS,
    Ack,
    Allocation,
    AllocationSlot,
    Delivery,
    Link,
    LinkState,
    Owner,
    Place,
)
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.observations import Observation, RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import (
    HostChain,
    JobRecord,
    JobStatus,
    Ruling,
    RulingKind,
    Run,
    RunCounts,
    RunState,
)
from linkwatch_pipeline.domain.timestamps import format_utc, parse_utc
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import ExportedWeek

# sort_keys gives equal values equal text, which a compare-and-swap of whole rows leans on.
_to_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def _enum(kind: type[StrEnum]) -> Converter:
    return Converter(write=str, read=kind)


def _write_allocations(allocations: Mapping[AllocationSlot, Allocation]) -> str:
    return _to_json(
        {
            slot.value: {
                "run_id": held.run_id,
                "sequence": held.sequence,
                "host": held.host,
                "config_version": held.config_version,
            }
            for slot, held in allocations.items()
        }
    )


def _read_allocations(text: str) -> dict[AllocationSlot, Allocation]:
    return {AllocationSlot(slot): Allocation(**held) for slot, held in read_json(text).items()}


def _write_counts(counts: RunCounts) -> str:
    return _to_json({"expected": counts.expected, "by_end": dict(counts.by_end)})


def _write_place(place: Place) -> list[object]:
    return [place.file, place.line] if place.scanned_for is None else [place.file, place.line, place.scanned_for]


def _read_place(file: str, line: int, scanned_for: str | None = None) -> Place:
    return Place(file=file, line=line, scanned_for=scanned_for)


def _write_ack(ack: Ack) -> str:
    return _to_json({"version": ack.version, "reason": ack.reason, "by": ack.by, "at": format_utc(ack.at)})


def _read_ack(text: str) -> Ack:
    held = read_json(text)
    return Ack(**held | {"at": parse_utc(held["at"])})


def _write_ruling(ruling: Ruling) -> str:
    return _to_json({"kind": ruling.kind.value, "at": format_utc(ruling.at), "by": ruling.by, "why": ruling.why})


def _read_ruling(text: str) -> Ruling:
    held = read_json(text)
    return Ruling(**held | {"kind": RulingKind(held["kind"]), "at": parse_utc(held["at"])})


_TIME = Converter(write=format_utc, read=parse_utc)
_FLAG = Converter(write=int, read={0: False, 1: True}.__getitem__)
_TEXTS = Converter(write=_to_json, read=lambda text: tuple(read_json(text)))
_COUNTERS = Converter(write=lambda counts: _to_json(dict(counts)), read=read_json)
_TOTALS = Converter(write=_write_counts, read=lambda text: RunCounts(**read_json(text)))
_ALLOCATIONS = Converter(write=_write_allocations, read=_read_allocations)
_PLACES = Converter(
    write=lambda places: _to_json([_write_place(place) for place in places]),
    read=lambda text: tuple(_read_place(*place) for place in read_json(text)),
)
_REDIRECTS = Converter(
    write=lambda hops: _to_json([[hop.url, hop.status] for hop in hops]),
    read=lambda text: tuple(RedirectHop(url=url, status=status) for url, status in read_json(text)),
)
_REASON = _enum(Reason)
_STATE = _enum(LinkState)

LINKS = Table(
    "links",
    Link,
    key=("id",),
    converters={
        "active_since": _TIME,
        "retired_at": _TIME,
        "places": _PLACES,
        "also_used_by": _TEXTS,
        "state": _STATE,
        "state_since": _TIME,
        "allocations": _ALLOCATIONS,
        "ack": Converter(write=_write_ack, read=_read_ack),
    },
    may_lack=LONG_FIELDS,
)
OWNERS = Table("owners", Owner, key=("team",), converters={"delivery": _enum(Delivery)})
RUNS = Table(
    "runs",
    Run,
    key=("run_id",),
    converters={
        "intended_at": _TIME,
        "started_at": _TIME,
        "state": _enum(RunState),
        "dispatched_at": _TIME,
        "closed_at": _TIME,
        "totals": _TOTALS,
        "ruling": Converter(write=_write_ruling, read=_read_ruling),
    },
)
JOBS = Table(
    "jobs",
    JobRecord,
    key=("run_id", "link_id"),
    converters={"status": _enum(JobStatus), "outcome": _enum(Outcome), "reason": _REASON},
)
CHAINS = Table(
    "chains",
    HostChain,
    key=("run_id", "host"),
    converters={
        "head_ready_at": _TIME,
        "counts": _COUNTERS,
        "first_observed_at": _TIME,
        "last_observed_at": _TIME,
        "planned_sent_at": _TIME,
    },
)
HOSTS = Table("hosts", HostRecord, key=("host",), converters={"lease_until": _TIME, "next_allowed_at": _TIME})
OBSERVATIONS = Table(
    "observations",
    Observation,
    key=("link_id", "sequence"),
    converters={
        "started_at": _TIME,
        "observed_at": _TIME,
        "outcome": _enum(Outcome),
        "reason": _REASON,
        "content_complete": _FLAG,
        "marker_found": _FLAG,
        "redirects": _REDIRECTS,
        "tls_not_after": _TIME,
        "page_hints": _TEXTS,
    },
)
TRANSITIONS = Table(
    "transitions",
    Transition,
    key=("link_id", "version"),
    converters={"from_state": _STATE, "to_state": _STATE, "at": _TIME, "since": _TIME},
)
NOTICES = Table(
    "notices",
    Notice,
    key=("transition_id",),
    converters={
        "also_used_by": _TEXTS,
        "places": _PLACES,
        "from_state": _STATE,
        "to_state": _STATE,
        "since": _TIME,
        "observed_reason": _REASON,
        "observed_at": _TIME,
        "created_at": _TIME,
        "release_at": _TIME,
        "status": _enum(NoticeStatus),
        "claim_until": _TIME,
        "next_attempt_at": _TIME,
        "sent_at": _TIME,
    },
    may_lack=("further_places",),
)
# How a notice's delivery stands; the rest is what its mail says, written once with the transition.
NOTICE_DELIVERY = (
    "release_at",
    "status",
    "attempts",
    "claimed_by",
    "claim_until",
    "recipient",
    "mail_id",
    "provider_id",
    "last_error",
    "next_attempt_at",
    "sent_at",
)
MUTES = Table(
    "mutes", Mute, key=("target",), converters={"since": _TIME, "until": _TIME, "ended_at": _TIME, "lifted_at": _TIME}
)
EXPORTED_WEEKS = Table("exported_weeks", ExportedWeek, key=("week",), converters={"week": _TIME, "exported_at": _TIME})

# By name. A record of a later table may belong to one of an earlier table.
TABLES: dict[str, Table[Any]] = {
    table.name: table
    for table in (
        OWNERS,
        LINKS,
        RUNS,
        JOBS,
        CHAINS,
        HOSTS,
        OBSERVATIONS,
        TRANSITIONS,
        NOTICES,
        MUTES,
        EXPORTED_WEEKS,
    )
}
_TABLES_BY_RECORD = {table.record: table for table in TABLES.values()}


def table_of(record: object) -> Table[Any]:
    """The table that holds records of this kind."""
    return _TABLES_BY_RECORD[type(record)]
