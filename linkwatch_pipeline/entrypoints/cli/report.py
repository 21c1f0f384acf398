"""`linkwatch report`: what a week saw, what it did not, and what a person should look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.coverage import Ranked, WeekCount
    from linkwatch_pipeline.domain.links import Link
    from linkwatch_pipeline.domain.reasons import Reason
    from linkwatch_pipeline.use_cases.report import CoverageReport

T = TypeVar("T")

SHOWN = 20  # rows of each list on a terminal
WEEKS_SHOWN = 13


@click.command()
@click.option("--week", metavar="MONDAY", help="Such as 2026-09-28; the newest week without it.")
@values.as_json
@click.pass_context
def report(context: click.Context, week: str | None, as_json: bool) -> None:
    """Show a week's coverage and outcomes, beside all weeks before it."""
    from linkwatch_pipeline.domain.timestamps import parse_week
    from linkwatch_pipeline.use_cases.report import newest_week, report_week

    asked = parse_week(week) if week is not None else None
    with open_app(context) as app:
        monday = asked or newest_week(app.store, app.reports, now=app.clock.now())
        found = report_week(app.store, app.warehouse, app.reports, monday, clock=app.in_week(monday).clock)
    print_json(report_document(found)) if as_json else _print_report(found)


def report_document(found: CoverageReport) -> dict[str, object]:
    """The report as JSON: fields may be added, those here keep their meaning (docs/reference/json.md)."""
    from linkwatch_pipeline.domain.timestamps import week_key
    from linkwatch_pipeline.entrypoints.cli.documents import moment

    return {
        "week": week_key(found.this_week.week),
        "this_week": _week_document(found.this_week),
        "weeks": [_week_document(each) for each in found.weeks],
        "worst_hosts": [
            {
                "host": h.host,
                "links": h.links,
                "broken": h.broken,
                "uncertain": h.uncertain,
                "throttled": h.throttled,
                "reasons": {reason.value: count for reason, count in h.reasons.items()},
            }
            for h in found.worst_hosts.rows
        ],
        "repeated_uncertainty": [
            {
                "link_id": r.link_id,
                "url": r.url,
                "weeks": r.weeks,
                "since": moment(r.since),
                "reason": r.reason.value if r.reason is not None else None,
                "reasons": [reason.value for reason in r.reasons],
                **_registered(found.links.get(r.link_id)),
            }
            for r in found.repeated_uncertainty.rows
        ],
        "content_changed": [
            {
                "link_id": c.link_id,
                "url": c.url,
                "observed_at": moment(c.observed_at),
                "status": c.status,
                "final_url": c.final_url,
                **_registered(found.links.get(c.link_id)),
            }
            for c in found.content_changed.rows
        ],
        "totals": {
            "worst_hosts": found.worst_hosts.total,
            "repeated_uncertainty": found.repeated_uncertainty.total,
            "content_changed": found.content_changed.total,
        },
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


def _registered(link: Link | None) -> dict[str, object]:
    """Whose the link is now and where it stands; nothing is known of one that the store has not."""
    return {
        "owner": link.owner if link is not None else None,
        "expect": link.marker if link is not None else None,
        "retired": link.retired_at is not None if link is not None else None,
        "places": [{"file": place.file, "line": place.line} for place in link.places] if link is not None else [],
    }


def _print_report(found: CoverageReport) -> None:
    _print_this_week(found.this_week)
    say("")
    _print_weeks(found.weeks)
    _print_list(
        "hosts with the most links broken, uncertain or throttled",
        ("HOST", "LINKS", "BROKEN", "UNCERTAIN", "THROTTLED", "REASONS"),
        found.worst_hosts,
        lambda h: (h.host, h.links, h.broken, h.uncertain, h.throttled, _counts(h.reasons)),
    )
    _print_list(
        "uncertain week after week: nobody knows whether these pages are there",
        ("LINK", "WEEKS", "SINCE", "REASON", "OWNER", "PLACE", "URL"),
        found.repeated_uncertainty,
        lambda r: (r.link_id, r.weeks, r.since, r.reason, *_owner_and_place(found.links.get(r.link_id)), r.url),
    )
    _print_list(
        "answered without the expected text: have a look",
        ("LINK", "AT", "STATUS", "OWNER", "PLACE", "URL"),
        found.content_changed,
        lambda c: (c.link_id, c.observed_at, c.status, *_owner_and_place(found.links.get(c.link_id)), c.url),
    )
    for problem in found.problems:
        say(f"\nno data: {problem}")


def _print_this_week(week: WeekCount) -> None:
    from linkwatch_pipeline.domain.coverage import WARN_BELOW, is_poor, percent
    from linkwatch_pipeline.domain.outcomes import Outcome
    from linkwatch_pipeline.domain.timestamps import week_key

    say(f"week {week_key(week.week)}: {_run(week)}")
    poor = f" (poor: below {percent(WARN_BELOW)})" if week.coverage is not None and is_poor(week.coverage) else ""
    say(f"coverage {percent(week.coverage)}{poor}, completeness {percent(week.completeness)}")
    say("")
    print_table(
        ("OUTCOME", "LINKS", "SHARE"),
        ((outcome.value, week.count(outcome), percent(week.share(outcome))) for outcome in Outcome),
    )
    say("each link once, by its last look of the week's runs; checks by hand are left out")


def _print_weeks(weeks: Sequence[WeekCount]) -> None:
    from linkwatch_pipeline.domain.coverage import percent
    from linkwatch_pipeline.domain.outcomes import Outcome
    from linkwatch_pipeline.domain.timestamps import week_key

    print_table(
        ("WEEK", "RUN", "COVERAGE", "COMPLETE", "LINKS", *(outcome.value.upper() for outcome in Outcome)),
        (
            (
                week_key(week.week),
                week.run_state,
                percent(week.coverage),
                percent(week.completeness),
                week.links_seen,
                *(week.count(outcome) for outcome in Outcome),
            )
            for week in weeks[:WEEKS_SHOWN]
        ),
    )
    _print_rest(len(weeks) - WEEKS_SHOWN)


def _print_list(title: str, headers: Sequence[str], found: Ranked[T], row: Callable[[T], Sequence[object]]) -> None:
    if found.rows:
        say(f"\n{title}")
        print_table(headers, (row(each) for each in found.rows[:SHOWN]))
        _print_rest(found.total - SHOWN)


def _print_rest(rest: int) -> None:
    if rest > 0:
        say(f"and {rest} more; see --json")


def _run(week: WeekCount) -> str:
    from linkwatch_pipeline.domain.runs import COUNTED

    if week.run_state is None or week.counts is None:
        return "no run is known"
    ends = {end: week.counts.by_end[end] for end in COUNTED if end in week.counts.by_end}
    return f"{week.run_state.value}, {week.counts.terminal} of {week.counts.expected} jobs ended: {_counts(ends)}"


def _counts(by_name: Mapping[str, int] | Mapping[Reason, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in by_name.items()) or "nothing yet"


def _owner_and_place(link: Link | None) -> Iterable[str | None]:
    if link is None:
        return None, None
    places = [f"{place.file}:{place.line}" for place in link.places]
    more = f" (+{len(places) - 1})" if len(places) > 1 else ""
    owner = link.owner or "nobody"
    return f"{owner} (retired)" if link.retired_at is not None else owner, f"{places[0]}{more}" if places else None
