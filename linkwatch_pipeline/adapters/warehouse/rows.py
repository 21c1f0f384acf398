"""How records become rows of the warehouse's files and back: a column per field, times as microseconds on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from linkwatch_pipeline.adapters.warehouse.schema import COLUMNS, INSTANT, LINKS, NOTICES, TRANSITIONS
from linkwatch_pipeline.domain.links import Link, LinkState, Place
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.observations import Observation, RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.transitions import Transition

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def observation_row(observation: Observation) -> Row:
    row = _row(observation, COLUMNS)
    row["redirects"] = [{"url": hop.url, "status": hop.status} for hop in observation.redirects]
    return row


def observation_of(row: Row) -> Observation:
    hops = tuple(RedirectHop(url=hop["url"], status=hop["status"]) for hop in row.pop("redirects"))
    return Observation(
        **_values(row, COLUMNS, {"outcome": Outcome, "reason": Reason, "page_hints": tuple}), redirects=hops
    )


def transition_row(transition: Transition) -> Row:
    return _row(transition, TRANSITIONS)


def transition_of(row: Row) -> Transition:
    return Transition(**_values(row, TRANSITIONS, {"from_state": LinkState, "to_state": LinkState}))


def notice_row(notice: Notice) -> Row:
    return {**_row(notice, NOTICES), "places": _place_rows(notice.places)}


def notice_of(row: Row) -> Notice:
    kinds: dict[str, Callable[[Any], Any]] = {
        "from_state": LinkState,
        "to_state": LinkState,
        "observed_reason": Reason,
        "status": NoticeStatus,
        "also_used_by": tuple,
        "places": lambda places: tuple(Place(file=place["file"], line=place["line"]) for place in places),
    }
    return Notice(**_values(row, NOTICES, kinds))


def link_row(link: Link) -> Row:
    values = {column: getattr(link, column) for column in LINKS if column != "link_id"}
    row = {"link_id": link.id, **values, "places": _place_rows(link.places)}
    return _with_microseconds(row, LINKS)


def _place_rows(places: tuple[Place, ...]) -> list[Row]:
    return [{"file": place.file, "line": place.line} for place in places]


def _row(record: Any, columns: Mapping[str, str]) -> Row:
    return _with_microseconds({field.name: getattr(record, field.name) for field in fields(record)}, columns)


def _with_microseconds(row: Row, columns: Mapping[str, str]) -> Row:
    for column, kind in columns.items():
        if kind == INSTANT and row[column] is not None:
            row[column] = (row[column] - _EPOCH) // _MICROSECOND
    return row


def _values(row: Row, columns: Mapping[str, str], kinds: Mapping[str, Callable[[Any], Any]]) -> Row:
    """The row's values as the record has them: moments, enumerations, tuples."""
    for column, value in row.items():
        if value is None:
            continue
        if columns[column] == INSTANT:
            row[column] = _EPOCH + value * _MICROSECOND
        elif column in kinds:
            row[column] = kinds[column](value)
    return row
