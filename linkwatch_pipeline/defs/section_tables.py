"""The sections of the coverage report as tables in the Dagster UI: the same sections as on the page."""

import re
from collections.abc import Iterable
from datetime import datetime

import dagster as dg

from linkwatch_pipeline.adapters.report_formats.background import background
from linkwatch_pipeline.adapters.report_formats.inert import cut, visible
from linkwatch_pipeline.adapters.report_formats.sections import parts
from linkwatch_pipeline.adapters.report_formats.table import Cell as Content
from linkwatch_pipeline.adapters.report_formats.table import Column, Kind, Part, Section
from linkwatch_pipeline.defs.tables import Cell, table
from linkwatch_pipeline.domain.report import CoverageReport

MOST_ROWS = 200
MOST_OF_BACKGROUND = 50
_LONGEST = 300  # characters of a cell: every materialisation keeps its tables in Dagster's event log


def section_tables(report: CoverageReport) -> dict[str, dg.MetadataValue]:
    """Each section by a name made of its title; advice says so in its name. An empty section is its sentence."""
    shown = (*parts(report, most=MOST_ROWS), background(report, most=MOST_OF_BACKGROUND))
    return {_name(part, section): _shown(section) for part in shown for section in part.sections}


def _name(part: Part, section: Section) -> str:
    words = f"{part.key} {section.title}" if part.key == "advice" else section.title
    return re.sub("[^a-z0-9]+", "_", words.lower())


def _shown(section: Section) -> dg.MetadataValue:
    if not section.rows:
        return dg.MetadataValue.text(section.empty)
    columns = [_column(column, (row[number] for row in section.rows)) for number, column in enumerate(section.columns)]
    rows: list[list[Cell]] = [[_cell(cell) for cell in row] for row in section.rows]
    left_out = section.total - len(rows)
    if left_out > 0:
        rows.append([f"and {left_out:,} more: see the page", *([""] * (len(columns) - 1))])
    return table(columns, rows)


def _column(column: Column, cells: Iterable[Content]) -> dg.TableColumn:
    whole = column.kind is Kind.NUMBER and all(cell is None or isinstance(cell, int) for cell in cells)
    return dg.TableColumn(column.label, "int" if whole else "string", _MEANINGS.get(column.label))


def _cell(cell: Content) -> Cell:
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M}"
    return cut(visible(cell), _LONGEST) if isinstance(cell, str) else cell


# What the labels leave open, where there is no room for the page's sentences.
_MEANINGS = {
    "place": "file and line in the handbook, the first one",
    "owner": "the team that is told",
    "status": "HTTP status, empty without a usable answer",
    "this week": "what this week's last look found",
    "broken since": "UTC",
    "found since": "UTC",
    "good from": "when the good state before it began (UTC); empty: it was never known to be good",
    "since": "UTC",
    "ends": "UTC",
    "weeks in a row": "without a verdict",
    "available": "weeks in which it was found, of those with a verdict",
}
