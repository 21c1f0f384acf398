"""CSV as spreadsheets write it: a header, then rows. A cell is a text and never a formula, whatever it begins with."""

from __future__ import annotations

import csv
import io

from linkwatch_pipeline.adapters.tables.broken import BrokenTable, refuse_row_beyond_bound
from linkwatch_pipeline.domain.tables import MAX_FIELDS, ROW, RowProblem, Table, TableRow, shown_name

_DELIMITERS = ",;\t"


def read_csv(text: str) -> Table:
    """The table; the delimiter is whichever of `,`, `;` and tab its first line has most of. Raises BrokenTable."""
    header = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    # strict: a quote that is never closed would make one cell of the rest of the file
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    columns: tuple[str, ...] | None = None
    header_line = 1
    rows: list[TableRow] = []
    line = 1
    try:
        for cells in lines:
            if any(cell.strip() for cell in cells):
                if columns is None:
                    columns, header_line = tuple(_without_blank_end(cells, 0)), line
                else:
                    refuse_row_beyond_bound(len(rows), line)
                    rows.append(_row(columns, _without_blank_end(cells, len(columns)), line))
            line = lines.line_num + 1
    except csv.Error as error:
        mend = "Quote cells with commas, quotes or line breaks, and double the quotes inside."
        raise BrokenTable(line, f"this is not CSV: {error}", mend) from error
    columns = columns or ()
    return Table(
        rows=tuple(rows),
        columns=tuple(dict.fromkeys(columns)),
        header_line=header_line,
        problems=_twice(columns, header_line),
    )


def _row(columns: tuple[str, ...], cells: list[str], line: int) -> TableRow:
    if len(cells) != len(columns):
        problem = f"has {len(cells)} cells, and the header has {len(columns)}"
        return TableRow(line=line, cells={}, problems=(RowProblem(line=line, field=ROW, problem=problem),))
    return TableRow(line=line, cells={name: cell for name, cell in zip(columns, cells, strict=True) if cell.strip()})


def _without_blank_end(cells: list[str], width: int) -> list[str]:
    """The cells without the blank ones that a spreadsheet leaves behind its last column."""
    end = len(cells)
    while end > width and not cells[end - 1].strip():
        end -= 1
    return cells[:end]


def _twice(columns: tuple[str, ...], line: int) -> tuple[RowProblem, ...]:
    seen: set[str] = set()
    problems = []
    for name in columns[: MAX_FIELDS + 1]:
        if name in seen:
            problems.append(RowProblem(line=line, field=shown_name(name), problem="the column is there twice"))
        seen.add(name)
    return tuple(problems)
