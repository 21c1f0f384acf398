"""Links in CSV tables, cell by cell: a comma between cells is no part of a URL, one inside a quoted cell is."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from linkwatch_pipeline.adapters.handbook.bare_urls import find_bare_urls
from linkwatch_pipeline.domain.handbook import FoundLink

_WHOLE_CELL = re.compile(r"(?i:https?://)\S+")
_DELIMITERS = "\t;,|"


def csv_links(text: str) -> list[FoundLink]:
    """Every URL of a table, in order; the delimiter is whichever of tab, `;`, `,` and `|` its first line has most of.

    Raises ValueError for a table that cannot be read.
    """
    first_line = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first_line.count) if any(d in first_line for d in _DELIMITERS) else ","
    most_before = csv.field_size_limit(max(len(text), 1))  # the size of the file bounds a cell
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    found: list[FoundLink] = []
    line = 1
    try:
        for row in rows:
            found.extend(_row_links(row, line))
            line = rows.line_num + 1
    except csv.Error as error:
        raise ValueError(f"not a CSV table: {error}") from error
    finally:
        csv.field_size_limit(most_before)  # it is the whole process's
    return found


def _row_links(row: list[str], line: int) -> Iterator[FoundLink]:
    for cell in row:
        whole = cell.strip()
        if _WHOLE_CELL.fullmatch(whole):
            yield FoundLink(text=whole, line=line)
        else:
            for bare in find_bare_urls(cell):
                yield FoundLink(text=bare.url, line=line + cell.count("\n", 0, bare.start))
        line += cell.count("\n")
