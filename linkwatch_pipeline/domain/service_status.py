"""What the minute-cadence monitor says about a service (SPEC 13): a check, its message, its status for readers.

The message, the key and the JSON are those of the original, so that its other half, its API and its frontend go on as
they are. A status is what one check saw. Whether enough of them follow each other to tell somebody is decided in
`service_changes`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar
from uuid import UUID, uuid5

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.json_text import parse_json, read_json
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.timestamps import format_seconds, require_utc

T = TypeVar("T")

CYCLE = timedelta(seconds=60)
LIVES_FOR = timedelta(seconds=90)  # a status that nobody renewed is no status any more
HISTORY_WINDOW = timedelta(hours=24)  # what a reader shows
MAX_MESSAGE_CHARACTERS = 131_072
MAX_ID_CHARACTERS = 200
MAX_URL_CHARACTERS = 8_192
MAX_LATENCY_MS = 3_600_000.0
REFUSALS = frozenset({Reason.BLOCKED_ADDRESS, Reason.BLOCKED_URL, Reason.BLOCKED_PORT, Reason.BLOCKED_SCHEME})
_ROW_IDS = UUID("5b0d7a0e-61c6-5d0f-9f4b-6f1f6b1a5f13")
_FIELDS = ("service_id", "user_id", "url", "status", "latency_ms")
_GOLDEN = 0.6180339887498949


class Status(StrEnum):
    """What one check saw."""

    UP = "UP"
    DOWN = "DOWN"


UNKNOWN = "UNKNOWN"  # what a reader says of a service without any status


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One row of `services`, as far as it is looked at. Ids as text, whatever their column's type."""

    id: str
    user_id: str
    name: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCheck:
    """One check of one service. `latency_ms` is monotonic time from asking to the end of the answer, two decimals.

    None is another monitor's word for a service that did not answer. `refused` is whether our own policy kept the
    request from being made: DOWN, but nothing to tell an owner.
    """

    service_id: str
    user_id: str
    url: str
    status: Status
    latency_ms: float | None
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusMessage:
    """One delivery of a message: its id and sent time are the queue's; `handle` acknowledges this delivery.

    `refused` travels beside the body, which is the original's.
    """

    message_id: str
    sent_at: datetime
    body: str
    refused: bool = False
    handle: str = ""
    receive_count: int = 1

    def __post_init__(self) -> None:
        require_utc("sent_at", self.sent_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRecord:
    """What is written: the same for each delivery of a message. `checked_at` is UTC in whole seconds."""

    id: UUID
    service_id: str
    user_id: str
    status: Status
    response_time: float | None
    checked_at: datetime
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenStatus:
    """What a reader found: a status, its response time (ms, None if there is none) and when it was checked (UTC)."""

    status: str
    response_time: float | None
    checked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDay:
    """What was seen of one service in a span of time. Latencies (ms) of its UP checks, None without one."""

    service: Service
    checks: int
    up: int
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_p99: float | None = None
    last_checked_at: datetime | None = None

    @property
    def uptime(self) -> float | None:
        """UP checks over all checks, 0 to 1; None if nothing was checked."""
        return self.up / self.checks if self.checks else None


def status_of(result: FetchResult) -> Status:
    """UP for a 2xx answer that came whole, as far as it was wanted, within the deadline; else DOWN."""
    answered = result.failure is None and result.status is not None and 200 <= result.status <= 299
    return Status.UP if answered else Status.DOWN


def check_of(service: Service, result: FetchResult, latency: timedelta) -> ServiceCheck:
    """What an answer says of one service."""
    return ServiceCheck(
        service_id=service.id,
        user_id=service.user_id,
        url=service.url[:MAX_URL_CHARACTERS],
        status=status_of(result),
        latency_ms=round(latency / timedelta(milliseconds=1), 2),
        refused=result.failure in REFUSALS,
    )


def encode_check(check: ServiceCheck) -> str:
    """The message of a check, as the original's processor reads it."""
    return json.dumps({name: getattr(check, name) for name in _FIELDS})


def decode_check(body: str) -> ServiceCheck:
    """Read a message, ours or the original's. Raises InvalidInput naming the field that is wrong."""
    if len(body) > MAX_MESSAGE_CHARACTERS:
        raise InvalidInput("message", f"it is longer than {MAX_MESSAGE_CHARACTERS} characters", "Send one check each.")
    try:
        content = parse_json(body)
    except ValueError:
        raise InvalidInput("message", "it is not JSON", f"Send an object with {', '.join(_FIELDS)}.") from None
    if not isinstance(content, dict):
        raise InvalidInput("message", "it is not a JSON object", f"Send an object with {', '.join(_FIELDS)}.")
    return ServiceCheck(
        service_id=_id(content, "service_id"),
        user_id=_carried_or_nothing(content, "user_id"),
        url=_carried_or_nothing(content, "url"),
        status=_status(content),
        latency_ms=_latency(content),
    )


def record_of(message: StatusMessage) -> StatusRecord:
    """What a message asks to be written. Raises InvalidInput."""
    check = decode_check(message.body)
    return StatusRecord(
        id=row_id(message.message_id),
        service_id=check.service_id,
        user_id=check.user_id,
        status=check.status,
        response_time=check.latency_ms,
        checked_at=message.sent_at.replace(microsecond=0),
        refused=message.refused,
    )


def row_id(message_id: str) -> UUID:
    """The id of the one row that a message makes, however often it is delivered."""
    return uuid5(_ROW_IDS, message_id)


def status_key(service_id: str) -> str:
    """Where a service's status is in Redis."""
    return f"status:{service_id}"


def status_value(record: StatusRecord) -> str:
    """What is there. `checked_at` has one width, so text order is time order."""
    content = {"status": record.status, "response_time": record.response_time}
    return json.dumps({**content, "checked_at": format_seconds(record.checked_at)})


def seen_in(value: str) -> SeenStatus | None:
    """What a reader finds in Redis; None if it is not a status."""
    try:
        content = read_json(value)
        checked_at = datetime.fromisoformat(content["checked_at"])
        response_time = content["response_time"]
        return SeenStatus(
            status=str(content["status"]),
            response_time=None if response_time is None else float(response_time),
            checked_at=checked_at.replace(tzinfo=checked_at.tzinfo or UTC).astimezone(UTC),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def grouped_by_url(services: Sequence[Service]) -> list[tuple[Service, ...]]:
    """The services to check, those with one URL together: it is asked once, and each of them gets the answer.

    A service that is listed twice is there once. In the order in which the URLs first came.
    """
    groups: dict[str, dict[str, Service]] = {}
    for service in {service.id: service for service in services}.values():
        groups.setdefault(service.url, {})[service.id] = service
    return [tuple(group.values()) for group in groups.values()]


def turned(items: Sequence[T], cycle: int) -> list[T]:
    """The items from another beginning in each cycle, so that no item is always the last one."""
    start = int(len(items) * (cycle * _GOLDEN % 1.0))
    return [*items[start:], *items[:start]]


def _id(content: Mapping[str, object], name: str) -> str:
    value = _carried(content, name)
    if not 0 < len(value) <= MAX_ID_CHARACTERS or not value.isprintable():
        raise InvalidInput(name, "it is no id", f"Give 1 to {MAX_ID_CHARACTERS} characters on one line.")
    return value


def _carried(content: Mapping[str, object], name: str) -> str:
    """A field that is handed on as it is: text, or a number as another writer may send it."""
    value = content.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(name, "it is missing or is no text", "Give it as the services table has it.")
    text = str(value)
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(name, "it has a character that no table can hold", "Give Unicode text without NUL.")
    return text


def _carried_or_nothing(content: Mapping[str, object], name: str) -> str:
    """The same, empty for the null of a column that may be null: no row and no status has it."""
    return "" if name in content and content[name] is None else _carried(content, name)


def _status(content: Mapping[str, object]) -> Status:
    try:
        return Status(str(content.get("status")))
    except ValueError:
        raise InvalidInput("status", f"{str(content.get('status'))[:40]!r} is no status", "Give UP or DOWN.") from None


def _latency(content: Mapping[str, object]) -> float | None:
    value = content.get("latency_ms")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_LATENCY_MS:
        raise InvalidInput("latency_ms", "it is no number of milliseconds", f"Give 0 to {MAX_LATENCY_MS:.0f}.")
    return round(float(value), 2)
