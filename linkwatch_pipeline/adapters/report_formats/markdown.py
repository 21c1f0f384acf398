"""The report as Markdown with tables, for wikis, issues and chats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from linkwatch_pipeline.adapters.report_formats.background import background, weeks_section
from linkwatch_pipeline.adapters.report_formats.inert import cut, visible, web_address
from linkwatch_pipeline.adapters.report_formats.sections import parts
from linkwatch_pipeline.adapters.report_formats.table import Cell, Kind, Section
from linkwatch_pipeline.domain.coverage import percent
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import format_seconds, week_key

MOST_ROWS = 100
WEEKS_SHOWN = 13
_LONGEST = 200  # characters of a cell
_OWN_WORDS = re.compile(r"[A-Za-z0-9 .,:;%-]*")


def markdown_report(report: CoverageReport) -> Iterator[str]:
    """The document in pieces. Lists are cut, and say so."""
    score, week = report.score, report.this_week
    unsure = "no data" if score.unsure is None else str(score.unsure)
    yield f"# Links of week {week_key(week.week)}\n\n"
    yield f"**To mend: {score.to_mend}** ({score.broken} broken, {score.text_missing} without the expected text, "
    yield f"{score.moved} moved for good). Nobody knows: {unsure}. Advice: {score.advice}. "
    yield f"Coverage {percent(week.coverage)}, completeness {percent(week.completeness)}.\n"
    if report.missed_in_words is not None:
        yield f"\n{report.missed_in_words}\n"
    for problem in report.problems:
        yield f"\nNo data: {_inert(problem)}\n"
    for part in (*parts(report, most=MOST_ROWS), background(report, most=MOST_ROWS)):
        yield f"\n## {part.title}\n\n{part.says}\n"
        for section in part.sections:
            yield from _section(section)
    yield from _section(weeks_section(report.weeks, most=WEEKS_SHOWN))


def _section(section: Section) -> Iterator[str]:
    yield f"\n### {section.title} ({section.total})\n\n"
    if not section.rows:
        yield f"{section.empty}\n"
        return
    yield f"{section.says}\n\n"
    yield "| " + " | ".join(column.label for column in section.columns) + " |\n"
    yield "|" + "|".join("---:" if column.kind is Kind.NUMBER else "---" for column in section.columns) + "|\n"
    for row in section.rows:
        cells = (_cell(cell, column.kind) for cell, column in zip(row, section.columns, strict=True))
        yield "| " + " | ".join(cells) + " |\n"
    if section.total > len(section.rows):
        yield f"\nand {section.total - len(section.rows)} more\n"


def _cell(cell: Cell, kind: Kind) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, datetime):
        return format_seconds(cell)
    if isinstance(cell, int):
        return str(cell)
    if kind is Kind.URL and (address := web_address(cell)) is not None:
        return f"[{_inert(cell)}](<{_destination(address)}>)"
    return cut(cell, _LONGEST) if _OWN_WORDS.fullmatch(cell) else _inert(cell)


def _inert(text: str) -> str:
    """As code, in which nobody is mentioned and nothing refers to an issue, and without any sign that means something.

    The element and not backticks: a table's `|` cannot be written between those.
    """
    signs = re.sub(r"[^\w\s./:,;()+=?%-]|_|:(?=//)", lambda sign: f"&#{ord(sign[0])};", cut(visible(text), _LONGEST))
    return f"<code>{signs}</code>"


def _destination(url: str) -> str:
    """A canonical address as Markdown and its tables read it back: entities stay what they are."""
    return re.sub(r"[<>|`\[\]]", lambda sign: f"%{ord(sign[0]):02X}", url).replace("&", "&amp;")
