"""A YAML list of mappings, alone or under the only key `links`, read event by event.

Nothing is constructed: no tags, no aliases, and every scalar is the text that stands there (`no` is no boolean).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn, TypeVar

import yaml

from linkwatch_pipeline.adapters.tables.broken import BrokenTable, refuse_row_beyond_bound
from linkwatch_pipeline.domain.tables import MAX_FIELDS, ROW, RowProblem, Table, TableRow, shown_name

E = TypeVar("E", bound=yaml.Event)

_MEND = "Give a list of mappings, one link each: '- link_id: guide', then its fields below."
_NULL = ("", "~", "null", "Null", "NULL")
_MAX_DEPTH = 20
# A directive for each line costs the parser the square of their number; no table needs one.
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)


def read_yaml(text: str) -> Table:
    """The table, each row with the line where it begins. Raises BrokenTable."""
    directive = _DIRECTIVE.search(text)
    if directive is not None:
        _refuse(text.count("\n", 0, directive.start()) + 1, "there is a directive")
    try:
        return Table(rows=tuple(_Events(text).rows()))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _refuse(mark.line + 1 if mark is not None else 1, f"this is not YAML: {error.problem or error.context}")
    except yaml.YAMLError as error:  # a character that YAML does not allow
        at = getattr(error, "position", 0)
        _refuse(text.count("\n", 0, at) + 1, "there is a control character")


class _Events:
    """The parser's events, one ahead."""

    def __init__(self, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same events, in a tenth of the time
        self._events = yaml.parse(text, Loader=loader)
        self._next = next(self._events)

    def rows(self) -> Iterator[TableRow]:
        self._take(yaml.StreamStartEvent, "this is empty")
        self._take(yaml.DocumentStartEvent, "there is no list")
        wrapped = isinstance(self._next, yaml.MappingStartEvent)
        if wrapped:
            self._take(yaml.MappingStartEvent, "")
            key = self._take(yaml.ScalarEvent, "this is not a list")
            if key.value != "links":
                _refuse(_line_of(key), "this is not a list")
        self._take(yaml.SequenceStartEvent, "this is not a list")
        rows = 0
        while not isinstance(self._next, yaml.SequenceEndEvent):
            refuse_row_beyond_bound(rows, self._line)
            rows += 1
            yield self._row()
        self._advance()
        if wrapped:
            self._take(yaml.MappingEndEvent, "there is more than 'links'")
        self._take(yaml.DocumentEndEvent, "there is more after the list")
        self._take(yaml.StreamEndEvent, "there is a second document")

    def _row(self) -> TableRow:
        line = self._line
        if not isinstance(self._next, yaml.MappingStartEvent):
            problem = RowProblem(line=line, field=ROW, problem=f"is {self._skip()} and not a mapping")
            return TableRow(line=line, cells={}, problems=(problem,))
        self._advance()
        cells: dict[str, str] = {}
        problems: list[RowProblem] = []
        names: list[str] = []
        while not isinstance(self._next, yaml.MappingEndEvent):
            name = self._take(yaml.ScalarEvent, "a field's name is not a text").value
            if len(names) > MAX_FIELDS:
                self._skip()
                continue
            if name in names:
                problems.append(RowProblem(line=self._line, field=shown_name(name), problem="is given twice"))
            names.append(name)
            self._read_value(name, cells, problems)
        self._advance()
        if len(names) > MAX_FIELDS:
            problems = [RowProblem(line=line, field=ROW, problem=f"has more than {MAX_FIELDS} fields")]
            cells = {}
        return TableRow(line=line, cells=cells, problems=tuple(problems))

    def _read_value(self, name: str, cells: dict[str, str], problems: list[RowProblem]) -> None:
        event = self._next
        line = self._line
        if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
            problems.append(RowProblem(line=line, field=shown_name(name), problem=f"is {self._skip()} and not a text"))
            return
        is_null = event.implicit[0] and event.value in _NULL
        if not is_null and event.value.strip():
            cells[name] = event.value
        self._advance()

    def _skip(self) -> str:
        """Go past the next value, however nested; what kind it was."""
        kind = _kind(self._next)
        depth = 0
        while True:
            depth += isinstance(self._next, yaml.CollectionStartEvent) - isinstance(self._next, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                _refuse(self._line, "this is nested too deeply")
            self._advance()
            if depth == 0:
                return kind

    @property
    def _line(self) -> int:
        return _line_of(self._next)

    def _advance(self) -> None:
        self._next = next(self._events, self._next)

    def _take(self, kind: type[E], otherwise: str) -> E:
        """The next event, which has to be of this kind."""
        event = self._next
        if not isinstance(event, kind):
            _refuse(self._line, otherwise)
        self._advance()
        return event


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def _kind(event: yaml.Event) -> str:
    match event:
        case yaml.AliasEvent():
            return "an alias"
        case yaml.SequenceStartEvent():
            return "a list"
        case yaml.MappingStartEvent():
            return "a mapping"
        case yaml.ScalarEvent(tag=str()):
            return "a tagged value"
        case _:
            return "a single value"


def _refuse(line: int, problem: str) -> NoReturn:
    raise BrokenTable(line, problem, _MEND)
