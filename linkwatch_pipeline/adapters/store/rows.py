"""How each record becomes a row and back: a column per field, under the field's name.

What SQLite holds as it is (text, whole numbers, None) needs no converter; the tables at the end name the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from linkwatch_pipeline.domain.hosts import HostRecord
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

Row = tuple[Any, ...]
_WORDS = {int: "a whole number", str: "a text"}


class Undecodable(ValueError):
    """A row that is no record. It quotes nothing of what the row holds. Args: key: what identifies the row."""

    def __init__(self, table: str, key: Row, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.table = table
        self.key = key
        self.field = field


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


R = TypeVar("R", bound=_Record)


@dataclass(frozen=True, slots=True)
class Converter:
    """How one field's values are written and read. None is stored as NULL and never converted."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class Table(Generic[R]):
    """One table and the record that its rows hold.

    Args:
        key: the columns that identify a row.
        converters: those of the fields that need one.
        may_lack: fields that have their default in a row without them, such as one of an earlier linkwatch.
    """

    def __init__(
        self,
        name: str,
        record: type[R],
        *,
        key: tuple[str, ...],
        converters: Mapping[str, Converter],
        may_lack: Sequence[str] = (),
    ):
        self.name = name
        self.key = key
        self.columns = tuple(field.name for field in fields(record))
        self.record = record
        self._converters = dict(converters)
        self._plain = [
            (index, _kind_of(field)) for index, field in enumerate(fields(record)) if field.name not in converters
        ]
        self._required = [
            index
            for index, field in enumerate(fields(record))
            if field.name not in may_lack and "None" not in str(field.type)
        ]
        self._defaults = [
            (self.columns.index(field.name), field.default) for field in fields(record) if field.name in may_lack
        ]
        self._readers = [(self.columns.index(column), converter.read) for column, converter in converters.items()]
        self._beside_key = tuple(column for column in self.columns if column not in key)
        self._where_key = " AND ".join(f"{column} = ?" for column in key)
        self.select = f"SELECT {', '.join(self.columns)} FROM {name}"
        self.select_one = f"{self.select} WHERE {self._where_key}"
        self.insert = f"INSERT INTO {name} ({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"
        self.insert_if_absent = f"{self.insert} ON CONFLICT ({', '.join(key)}) DO NOTHING"

    def encode(self, record: R, columns: Sequence[str] = ()) -> Row:
        """The record's values in the order of `columns`; of all columns if none is named."""
        return tuple(self._written(column, getattr(record, column)) for column in columns or self.columns)

    def decode(self, row: Sequence[Any]) -> R:
        """The record of a row in column order.

        Raises: Undecodable, naming the field that is missing or holds something else.
        """
        values = list(row)
        for index in self._required:
            if values[index] is None:
                raise self._undecodable(row, index, "is missing")
        for index, kind in self._plain:
            if values[index].__class__ is not kind and values[index] is not None:
                raise self._undecodable(row, index, f"is not {_WORDS[kind]}")
        for index, read in self._readers:
            if values[index] is not None:
                try:
                    values[index] = read(values[index])
                except (TypeError, ValueError, KeyError, AttributeError) as error:
                    raise self._undecodable(row, index, "cannot be read") from error
        for index, default in self._defaults:
            if values[index] is None:
                values[index] = default
        return self.record(**dict(zip(self.columns, values, strict=True)))

    def _undecodable(self, row: Sequence[Any], index: int, problem: str) -> Undecodable:
        key = tuple(row[self.columns.index(column)] for column in self.key)
        return Undecodable(self.name, key, self.columns[index], problem)

    def update(self, record: R, columns: Sequence[str] = ()) -> tuple[str, Row]:
        """The statement and values that write `columns` (all beside the key if none is named) of the record's row."""
        written = columns or self._beside_key
        assignments = ", ".join([f"{column} = ?" for column in written])
        sql = f"UPDATE {self.name} SET {assignments} WHERE {self._where_key}"
        return sql, self.encode(record, (*written, *self.key))

    def _written(self, column: str, value: Any) -> Any:
        converter = self._converters.get(column)
        return value if value is None or converter is None else converter.write(value)


def _kind_of(field: Field[Any]) -> type:
    """What a field without a converter holds, if it holds anything."""
    return int if str(field.type).startswith("int") else str


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
    return {AllocationSlot(slot): Allocation(**held) for slot, held in json.loads(text).items()}


def _write_counts(counts: RunCounts) -> str:
    return _to_json({"expected": counts.expected, "by_end": dict(counts.by_end)})


def _write_place(place: Place) -> list[object]:
    return [place.file, place.line] if place.scanned_for is None else [place.file, place.line, place.scanned_for]


def _read_place(file: str, line: int, scanned_for: str | None = None) -> Place:
    return Place(file=file, line=line, scanned_for=scanned_for)


def _write_ack(ack: Ack) -> str:
    return _to_json({"version": ack.version, "reason": ack.reason, "by": ack.by, "at": format_utc(ack.at)})


def _read_ack(text: str) -> Ack:
    held = json.loads(text)
    return Ack(**held | {"at": parse_utc(held["at"])})


def _write_ruling(ruling: Ruling) -> str:
    return _to_json({"kind": ruling.kind.value, "at": format_utc(ruling.at), "by": ruling.by, "why": ruling.why})


def _read_ruling(text: str) -> Ruling:
    held = json.loads(text)
    return Ruling(**held | {"kind": RulingKind(held["kind"]), "at": parse_utc(held["at"])})


_TIME = Converter(write=format_utc, read=parse_utc)
_FLAG = Converter(write=int, read={0: False, 1: True}.__getitem__)
_TEXTS = Converter(write=_to_json, read=lambda text: tuple(json.loads(text)))
_COUNTERS = Converter(write=lambda counts: _to_json(dict(counts)), read=json.loads)
_TOTALS = Converter(write=_write_counts, read=lambda text: RunCounts(**json.loads(text)))
_ALLOCATIONS = Converter(write=_write_allocations, read=_read_allocations)
_PLACES = Converter(
    write=lambda places: _to_json([_write_place(place) for place in places]),
    read=lambda text: tuple(_read_place(*place) for place in json.loads(text)),
)
_REDIRECTS = Converter(
    write=lambda hops: _to_json([[hop.url, hop.status] for hop in hops]),
    read=lambda text: tuple(RedirectHop(url=url, status=status) for url, status in json.loads(text)),
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
