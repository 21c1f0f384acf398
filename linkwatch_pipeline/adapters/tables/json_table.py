"""A JSON list of objects, alone or as the only member `links` of one object."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

from linkwatch_pipeline.adapters.tables.broken import BrokenTable, refuse_row_beyond_bound
from linkwatch_pipeline.domain.tables import MAX_FIELDS, ROW, RowProblem, Table, TableRow, shown_name

_MEND = 'Give a list of objects: [{"url": "https://...", ...}, ...]'
_BEGIN = re.compile(r'[ \t\r\n]*(\{[ \t\r\n]*"links"[ \t\r\n]*:[ \t\r\n]*)?\[[ \t\r\n]*')
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_END = re.compile(r"[ \t\r\n]*\][ \t\r\n]*")
_WRAPPER_END = re.compile(r"\}[ \t\r\n]*")


class _Object(dict[str, object]):
    """An object's members, and the names that it has twice."""

    twice: tuple[str, ...] = ()


def read_json(text: str) -> Table:
    """The table, each row with the line where its object begins. Raises BrokenTable."""
    begin = _BEGIN.match(text)
    if begin is None:
        _refuse(text, len(text) - len(text.lstrip()), "this is not a list")
    rows: list[TableRow] = []
    at = begin.end()
    for line, value, end in _items(text, at):
        refuse_row_beyond_bound(len(rows), line)
        rows.append(_row(value, line))
        at = end
    closed = _END.match(text, at)
    if closed is None:
        _refuse(text, at, "this is not JSON: ',' or ']' is missing")
    at = closed.end()
    if begin[1]:
        closed = _WRAPPER_END.match(text, at)
        if closed is None:
            _refuse(text, at, "there is more in the object than 'links'")
        at = closed.end()
    if at < len(text):
        _refuse(text, at, "there is more after the list")
    return Table(rows=tuple(rows))


def _items(text: str, at: int) -> Iterator[tuple[int, object, int]]:
    """(line, value, where it ends) of each item of the list whose first item would begin here."""
    if _END.match(text, at):
        return
    # Numbers stay as they are written. (A number of a million digits would take an age to convert.)
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_int=str, parse_float=str, parse_constant=_no_number)
    line = text.count("\n", 0, at) + 1
    while True:
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise BrokenTable(error.lineno, f"this is not JSON: {error.msg}", _MEND) from error
        except ValueError as error:
            raise BrokenTable(line, f"this is not JSON: {error}", _MEND) from error
        except RecursionError as error:
            raise BrokenTable(line, "this is nested too deeply", _MEND) from error
        yield line, value, end
        comma = _COMMA.match(text, end)
        if comma is None:
            return
        line += text.count("\n", at, comma.end())
        at = comma.end()


def _row(value: object, line: int) -> TableRow:
    if not isinstance(value, _Object):
        return _refused_row(line, f"is {_kind(value)} and not an object")
    if len(value) > MAX_FIELDS:
        return _refused_row(line, f"has {len(value)} fields; {MAX_FIELDS} at most")
    cells: dict[str, str] = {}
    problems = [RowProblem(line=line, field=shown_name(name), problem="is given twice") for name in value.twice]
    for name, given in value.items():
        if isinstance(given, str):
            if given.strip():
                cells[name] = given
        elif given is not None:
            problems.append(RowProblem(line=line, field=shown_name(name), problem=f"is {_kind(given)} and not a text"))
    return TableRow(line=line, cells=cells, problems=tuple(problems))


def _refused_row(line: int, problem: str) -> TableRow:
    return TableRow(line=line, cells={}, problems=(RowProblem(line=line, field=ROW, problem=problem),))


def _object(pairs: list[tuple[str, object]]) -> _Object:
    members = _Object(pairs)
    if len(members) < len(pairs):
        times = Counter(name for name, _ in pairs)
        members.twice = tuple(name for name, count in times.items() if count > 1)
    return members


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case str():
            return "a single value"
        case list():
            return "a list"
        case _:
            return "an object"


def _refuse(text: str, at: int, problem: str) -> NoReturn:
    raise BrokenTable(text.count("\n", 0, at) + 1, problem, _MEND)
