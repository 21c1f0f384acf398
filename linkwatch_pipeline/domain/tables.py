"""A table that somebody hands over: rows of named texts, and what is wrong with them by line and field.

Every value is a text, whatever the file's format makes of it: `confirm: 2` is '2' in CSV, JSON and YAML alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

MAX_ROWS = 10_000
MAX_FIELDS = 20  # of one row; more are refused without a look at each
ROW = "row"  # the field of a problem that is the whole row's

_MAX_SUGGESTIONS = 100
_SHOWN_CHARACTERS = 40
_PLAIN_NAME = re.compile(r"[\w.-]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProblem:
    """Why a row is refused. `line` counts from 1; `field` is the name that the person wrote, or should have."""

    line: int
    field: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row. `line` is where it begins; `cells` are the values that are given: a blank one is not."""

    line: int
    cells: Mapping[str, str]
    problems: tuple[RowProblem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows in their order.

    `columns` are named once for all rows, on `header_line`; None if each row names its own fields. `problems` are those
    of the header.
    """

    rows: tuple[TableRow, ...]
    columns: tuple[str, ...] | None = None
    header_line: int = 1
    problems: tuple[RowProblem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The fields that a table may have, those that every row needs, and other names for some of them."""

    fields: tuple[str, ...]
    required: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def read(self, table: Table) -> Table:
        """The table under the fields' own names, with a problem for every name that is unknown, missing or twice."""
        names = _Names(self)
        if table.columns is None:
            return replace(table, rows=tuple(self._read_row(row, names) for row in table.rows))
        known, problems = names.resolve(table.columns, table.header_line, "column")
        for name in self.required:
            if name not in known.values():
                problems.append(RowProblem(line=table.header_line, field=name, problem=f"there is no column {name!r}"))
        rows = (_renamed(row, known) for row in table.rows)
        needed = [name for name in self.required if name in known.values()]
        return replace(
            table,
            rows=tuple(replace(row, problems=(*row.problems, *_missing(row, needed))) for row in rows),
            problems=(*table.problems, *problems),
        )

    def _read_row(self, row: TableRow, names: _Names) -> TableRow:
        known, problems = names.resolve(tuple(row.cells), row.line, "field")
        row = replace(_renamed(row, known), problems=(*row.problems, *problems))
        told = {names.field_of(problem.field) or problem.field for problem in row.problems}
        return replace(row, problems=(*row.problems, *_missing(row, self.required, told)))


class _Names:
    """Finds the field that a name means, and suggests one for a name that means none."""

    def __init__(self, schema: Schema) -> None:
        self._aliases = {**{name: name for name in schema.fields}, **schema.aliases}
        self._fields = schema.fields
        self._suggested: dict[str, str] = {}

    def field_of(self, name: str) -> str | None:
        return self._aliases.get(name.strip().lower())

    def resolve(self, names: Sequence[str], line: int, kind: str) -> tuple[dict[str, str], list[RowProblem]]:
        """(name as written -> field) of the known ones, and what is wrong with the others."""
        if len(names) > MAX_FIELDS:
            return {}, [RowProblem(line=line, field=ROW, problem=f"has {len(names)} {kind}s; {MAX_FIELDS} at most")]
        known: dict[str, str] = {}
        problems = []
        for name in names:
            means = self.field_of(name)
            if means is None:
                problems.append(
                    RowProblem(line=line, field=shown_name(name), problem=f"unknown {kind}. {self._hint(name)}")
                )
            elif means in known.values():
                problems.append(RowProblem(line=line, field=shown_name(name), problem=f"{means} is given twice"))
            else:
                known[name] = means
        return known, problems

    def _hint(self, name: str) -> str:
        everything = f"Known are {', '.join(self._fields)}."
        if len(name) > _SHOWN_CHARACTERS or (
            name not in self._suggested and len(self._suggested) >= _MAX_SUGGESTIONS
        ):  # likeness is costly to tell, and this may be a hostile file
            return everything
        if name not in self._suggested:
            near = get_close_matches(name.strip().lower(), self._aliases)
            self._suggested[name] = f"Did you mean {' or '.join(near)}?" if near else everything
        return self._suggested[name]


def shown_name(name: str) -> str:
    """A field's name for people to read: short, and quoted if it is anything but a plain word."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return repr(name) if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]!r}…"


def _renamed(row: TableRow, known: Mapping[str, str]) -> TableRow:
    return replace(row, cells={known[name]: text for name, text in row.cells.items() if name in known})


def _missing(row: TableRow, needed: Sequence[str], told: Collection[str] = ()) -> list[RowProblem]:
    """A problem for each needed field that is not given, unless it (or the whole row) is `told` of already."""
    if any(problem.field == ROW for problem in row.problems):
        return []
    return [
        RowProblem(line=row.line, field=name, problem="is missing")
        for name in needed
        if name not in row.cells and name not in told
    ]
