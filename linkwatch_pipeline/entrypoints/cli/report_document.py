"""The report as JSON: fields may be added, those here keep their meaning (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.coverage import Ranked, WeekCount
    from linkwatch_pipeline.domain.links import Link
    from linkwatch_pipeline.domain.report import CoverageReport

LISTS = (
    "by_owner",
    "by_host",
    "by_file",
    "worst_hosts",
    "newly_broken",
    "recovered",
    "still_broken",
    "repeated_uncertainty",
    "content_changed",
    "moved_for_good",
    "suspected_pages",
    "ending_certificates",
    "slowest_hosts",
    "availability",
)


def report_document(found: CoverageReport) -> dict[str, object]:
    """All of a report; each list with as many rows as it has, and in `totals` how many there are."""
    from linkwatch_pipeline.domain.timestamps import week_key

    lists: dict[str, Ranked[Any]] = {name: getattr(found, name) for name in LISTS}
    return {
        "week": week_key(found.this_week.week),
        "this_week": _week_document(found.this_week),
        "score": {"to_mend": found.score.to_mend, **asdict(found.score)},
        "weeks": [_week_document(each) for each in found.weeks],
        **{name: [_row_document(row, found.links) for row in each.rows] for name, each in lists.items()},
        "totals": {name: each.total for name, each in lists.items()},
        "missed_since": [week_key(each) for each in found.missed_since],
        "problems": list(found.problems),
    }


def _week_document(week: WeekCount) -> dict[str, object]:
    from linkwatch_pipeline.domain.outcomes import Outcome
    from linkwatch_pipeline.domain.timestamps import week_key

    return {
        "week": week_key(week.week),
        "run_state": week.run_state.value if week.run_state is not None else None,
        "expected": week.counts.expected if week.counts is not None else None,
        "completed": week.counts.terminal if week.counts is not None else None,
        "completeness": week.completeness,
        "coverage": week.coverage,
        "jobs": dict(week.counts.by_end) if week.counts is not None else None,
        "links_seen": week.links_seen,
        "links": {outcome.value: week.count(outcome) for outcome in Outcome} if week.links is not None else None,
    }


def _row_document(row: Any, links: Mapping[str, Link]) -> dict[str, object]:
    """A row's own fields; whose a link is and where it stands; the numbers that follow from an availability."""
    from linkwatch_pipeline.domain.findings import LinkAvailability

    document = {field.name: _value(getattr(row, field.name)) for field in fields(row)}
    if isinstance(row, LinkAvailability):
        document |= {"share": row.share, "interval": _value(row.interval)}
    return {**document, **_registered(links.get(row.link_id))} if "link_id" in document else document


def _value(value: object) -> object:
    from linkwatch_pipeline.entrypoints.cli.documents import moment

    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    return {str(key): each for key, each in value.items()} if isinstance(value, Mapping) else value


def _registered(link: Link | None) -> dict[str, object]:
    """Whose the link is now and where it stands; nothing is known of one that the store has not."""
    return {
        "owner": link.owner if link is not None else None,
        "expect": link.marker if link is not None else None,
        "retired": link.retired_at is not None if link is not None else None,
        "places": [{"file": place.file, "line": place.line} for place in link.places] if link is not None else [],
    }
