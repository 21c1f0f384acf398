"""A table that somebody hands over: rows of named texts, and what is wrong with them by line and field.

Every value is a text, whatever the file's format makes of it: `confirm: 2` is '2' in CSV, JSON and YAML alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

MAX_ROWS = 10_000
# More in one row are not looked at one by one; no table here has half as many columns.
MAX_FIELDS = 20

_SUGGESTIONS = 100
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProblem:
    """Why a row is refused. `line` counts from 1, `field` is the name that the person wrote or should have."""

    line: int
    field: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row. `line` is where it begins; `cells` holds what is given: a blank value is not."""

    line: int
    cells: Mapping[str, str]
    problems: tuple[RowProblem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows in their order. `columns` are named once for all rows, on `header_line`; None if each row names its own.

    `problems` are those of the header.
    """

    rows: tuple[TableRow, ...]
    columns: tuple[str, ...] | None = None
    header_line: int = 1
    problems: tuple[RowProblem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Which fields a table may have, which of them every row needs, and other names for some."""

    fields: tuple[str, ...]
    required: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def read(self, table: Table) -> Table:
        """The table under the fields' own names, with a problem for each name that is unknown, missing or twice."""
        names = _Names(self)
        if table.columns is None:
            return replace(table, rows=tuple(self._read_row(row, names, self.required) for row in table.rows))
        header, renamed = self._read_header(table, table.columns, names)
        needed = tuple(name for name in self.required if name in renamed.values())
        rows = tuple(self._read_row(_renamed(row, renamed), names, needed) for row in table.rows)
        return replace(table, rows=rows, problems=(*table.problems, *header))

    def _read_header(
        self, table: Table, columns: tuple[str, ...], names: _Names
    ) -> tuple[list[RowProblem], dict[str, str]]:
        renamed, problems = names.resolve(columns, table.header_line, "column")
        missing = [name for name in self.required if name not in renamed.values()]
        problems += [
            RowProblem(line=table.header_line, field=name, problem=f"there is no column '{name}'") for name in missing
        ]
        return problems, renamed

    def _read_row(self, row: TableRow, names: _Names, required: tuple[str, ...]) -> TableRow:
        renamed, problems = names.resolve(tuple(row.cells), row.line, "field")
        cells = _renamed(row, renamed).cells
        told = {problem.field for problem in row.problems}
        if None not in told:
            problems += [
                RowProblem(line=row.line, field=name, problem="is missing")
                for name in required
                if name not in cells and not told & {name, WHOLE_ROW, *self._other_names(name)}
            ]
        return replace(row, cells=cells, problems=(*row.problems, *problems))

    def _other_names(self, name: str) -> set[str]:
        return {alias for alias, of in self.aliases.items() if of == name}


WHOLE_ROW = "row"
