"""The report's findings as CSV (RFC 4180): one row for each finding and place, for spreadsheets and scripts."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

from linkwatch_pipeline.adapters.report_formats.annotations import Annotation, annotate
from linkwatch_pipeline.adapters.report_formats.inert import no_formula, visible
from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import format_seconds, week_key

COLUMNS = ("week", "rule", "level", "link_id", "url", "owner", "file", "line", "since", "status", "detail")


def csv_report(report: CoverageReport) -> Iterator[str]:
    """The lines of the table, its header first."""
    week = week_key(report.this_week.week)
    yield csv_line(COLUMNS)
    for found in annotate(report):
        for place in found.places or (None,):
            yield csv_line(_row(week, found, place))


def csv_line(cells: Sequence[str | int | None]) -> str:
    """One line. A text from outside is visible, and no spreadsheet takes it for a formula; None is empty."""
    line = StringIO()
    csv.writer(line).writerow([no_formula(visible(cell)) if isinstance(cell, str) else cell for cell in cells])
    return line.getvalue()


def _row(week: str, found: Annotation, place: Place | None) -> Sequence[str | int | None]:
    return (
        week,
        found.rule.value,
        found.level.value,
        found.link_id,
        found.url,
        found.owner,
        place.file if place is not None else None,
        place.line if place is not None else None,
        format_seconds(found.since) if found.since is not None else None,
        found.status,
        found.detail,
    )
