"""The report as one HTML file that needs nothing else: no remote content, light and dark, sortable, printable.

The page works without its script; a content policy lets nothing run or load but the page's own style and script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from linkwatch_pipeline.adapters.report_formats import inert
from linkwatch_pipeline.adapters.report_formats.background import availability_of, background, weeks_section
from linkwatch_pipeline.adapters.report_formats.sections import parts
from linkwatch_pipeline.adapters.report_formats.table import Cell, Kind
from linkwatch_pipeline.adapters.report_formats.words import NOBODY, OUTCOME_WORDS
from linkwatch_pipeline.domain.coverage import WARN_BELOW, is_poor, percent
from linkwatch_pipeline.domain.errors import MissingExtra
from linkwatch_pipeline.domain.findings import GroupCount
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import week_key

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ROWS = 200  # of each table
MOST_OF_BACKGROUND = 50
WEEKS_SHOWN = 52
INDEX = "index.html"
_LONGEST = 300  # characters of a cell


def html_report(report: CoverageReport, *, most: int = MOST_ROWS) -> str:
    """The whole report as a page. Raises MissingExtra without jinja2."""
    return _render(
        "report.html",
        report=report,
        title=f"Links of week {week_key(report.this_week.week)}",
        parts=(*parts(report, most=most), background(report, most=min(most, MOST_OF_BACKGROUND))),
        weeks=weeks_section(report.weeks, most=WEEKS_SHOWN),
        by_outcome=[(o, w, report.this_week.count(o), report.this_week.share(o)) for o, w in OUTCOME_WORDS.items()],
    )


def overview_pages(
    report: CoverageReport, owners: Iterable[str], *, most: int = MOST_ROWS
) -> Iterator[tuple[str, str]]:
    """(file name, page) for an index and for each owner, links without one included.

    Args: report: whole, nothing cut.  owners: teams that have a page even if they have no links.
    """
    named = {group.name for group in report.by_owner.rows} | set(owners)
    named |= {link.owner for link in report.links.values()}
    ordered = sorted(named, key=lambda name: (name is None, name or ""))
    files = dict(zip(ordered, _file_names(ordered), strict=True))
    own = {name: report.of_owner(name) for name in ordered}
    groups = {group.name: group for group in report.by_owner.rows}
    groups |= {name: GroupCount(name=name, links=0, outcomes={}) for name in ordered if name not in groups}
    rows = [(name or NOBODY, files[name], groups[name], own[name]) for name in ordered]
    rows.sort(key=lambda row: -row[3].score.to_mend)
    week = week_key(report.this_week.week)
    yield INDEX, _render("overview.html", report=report, title=f"Owners of links, week {week}", rows=rows)
    for name in ordered:
        yield (
            files[name],
            _render(
                "owner.html",
                report=own[name],
                title=f"Links of {name or NOBODY}, week {week}",
                group=groups[name],
                index=INDEX,
                parts=parts(own[name], most=most),
                availability=availability_of(own[name], most=most),
            ),
        )


def _file_names(owners: Iterable[str | None]) -> Iterator[str]:
    """A file name for each owner, also where names of files do not tell large letters from small ones."""
    taken: dict[str, int] = {}
    for owner in owners:
        slug = f"owner-{re.sub('[^a-z0-9]+', '-', owner.lower()).strip('-')}" if owner is not None else "without-owner"
        taken[slug] = taken.get(slug, 0) + 1
        yield f"{slug}.html" if taken[slug] == 1 else f"{slug}--{taken[slug]}.html"


def _render(template: str, **values: Any) -> str:
    style, script = _part("report.css"), _part("report.js")
    own = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    return _environment().get_template(template).render(style=style, script=script, policy=policy, **values)


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as exc:
        raise MissingExtra("reports", "the report as HTML") from exc
    from linkwatch_pipeline.adapters.report_formats import pictures

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": _shown, "percent": percent, "number": "{:,}".format, "week": week_key}
    environment.globals |= {
        "Kind": Kind,
        "pictures": pictures,
        "words": OUTCOME_WORDS,
        "warn_below": WARN_BELOW,
        "is_poor": is_poor,
        "web_address": inert.web_address,
    }
    return environment


def _shown(cell: Cell) -> str:
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return inert.cut(inert.visible(cell), _LONGEST) if cell else "-"


@cache
def _part(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
