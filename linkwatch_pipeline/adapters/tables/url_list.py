"""A plain text with one URL a line."""

from __future__ import annotations

import re

from linkwatch_pipeline.adapters.tables.broken import refuse_row_beyond_bound
from linkwatch_pipeline.domain.tables import Table, TableRow

_LINE_END = re.compile(r"\r\n|\r|\n")


def read_url_list(text: str) -> Table:
    """A row with the field `url` for each line that is not blank. Raises BrokenTable."""
    rows: list[TableRow] = []
    for line, url in enumerate(_LINE_END.split(text), start=1):
        if url.strip():
            refuse_row_beyond_bound(len(rows), line)
            rows.append(TableRow(line=line, cells={"url": url}))
    return Table(rows=tuple(rows))
