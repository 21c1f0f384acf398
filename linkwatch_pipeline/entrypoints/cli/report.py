"""`linkwatch report`: what a week saw, what it did not, and what a person should look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app, warn
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from linkwatch_pipeline.domain.coverage import Ranked, WeekCount
    from linkwatch_pipeline.domain.findings import GroupCount, LinkAvailability
    from linkwatch_pipeline.domain.links import Link
    from linkwatch_pipeline.domain.reasons import Reason
    from linkwatch_pipeline.domain.report import CoverageReport, Score

T = TypeVar("T")

SHOWN = 20  # rows of each list on a terminal
SHOWN_OF_ADVICE = 5
WEEKS_SHOWN = 13
FORMATS = ("csv", "json", "markdown", "junit", "sarif")
_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--week", metavar="MONDAY", help="Such as 2026-09-28; the newest week without it.")
@values.as_json
@click.option("--format", "form", type=click.Choice(FORMATS), help="Print the findings in this format.")
@click.option("--out", metavar="FILE", type=_FILE, help="Write what --format prints into a file.")
@click.option("--html", metavar="FILE", type=_FILE, help="Write the report as one HTML file.")
@click.option("--overview", metavar="DIR", type=_FOLDER, help="Write an HTML page for each owner, and an index.")
@click.option("--patches", metavar="DIR", type=_FOLDER, help="Write patch files for links that moved for good.")
@click.option("--handbook", metavar="PATH", type=_FOLDER, help="The folder that was scanned, for --patches.")
@click.pass_context
def report(context: click.Context, /, week: str | None, as_json: bool, form: str | None, **paths: Path | None) -> None:
    """Show a week's coverage and outcomes, beside all weeks before it, or write them for people and pipelines."""
    from linkwatch_pipeline.domain.timestamps import check_begun, parse_week
    from linkwatch_pipeline.entrypoints.cli.report_files import check_paths, write_files
    from linkwatch_pipeline.use_cases.report import ALL_ROWS, MOST_ROWS, newest_week, report_week

    asked = parse_week(week) if week is not None else None
    if as_json and form is not None:
        raise click.UsageError("Give --json or --format, not both.")
    check_paths(form, **paths)
    whole = form is not None or any(paths.values())
    with open_app(context, if_unfinished=warn) as app, app.shared_warehouse() as warehouse:
        if asked is not None:
            check_begun(asked, now=app.clock.now())
        monday = asked or newest_week(app.store, app.reports, now=app.clock.now())
        clock = app.in_week(monday).clock
        most = ALL_ROWS if whole else MOST_ROWS
        found = report_week(app.store, warehouse, app.reports, monday, clock=clock, most=most)
        if whole:
            write_files(app, found, form, **paths)
    if as_json:
        from linkwatch_pipeline.entrypoints.cli.report_document import report_document

        print_json(report_document(found))
    elif not whole:
        _print_report(found)


def _print_report(found: CoverageReport) -> None:
    _print_this_week(found.this_week)
    if found.missed_in_words is not None:
        say(f"\n{found.missed_in_words}")
    _print_score(found.score)
    say("")
    _print_weeks(found.weeks)
    _print_owners(found.by_owner)
    _print_changes(found)
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
    _print_advice(found)
    for problem in found.problems:
        say(f"\nno data: {problem}")


def _print_owners(found: Ranked[GroupCount]) -> None:
    from linkwatch_pipeline.domain.outcomes import Outcome

    _print_list(
        "by owner",
        ("OWNER", "LINKS", *(outcome.value.upper() for outcome in Outcome)),
        found,
        lambda g: (g.name or "nobody", g.links, *(g.count(outcome) for outcome in Outcome)),
    )


def _print_changes(found: CoverageReport) -> None:
    for title, changes in (
        ("broke this week", found.newly_broken),
        ("still broken", found.still_broken),
        ("came back this week", found.recovered),
    ):
        _print_list(
            title,
            ("LINK", "SINCE", "STATUS", "OWNER", "PLACE", "URL"),
            changes,
            lambda c: (c.link_id, c.since, c.status, *_owner_and_place(found.links.get(c.link_id)), c.url),
        )


def _print_advice(found: CoverageReport) -> None:
    """What is no state and no verdict, in short lists."""
    _print_list(
        "moved for good: the link could name the new address",
        ("LINK", "PLACE", "NEW ADDRESS"),
        found.moved_for_good,
        lambda m: (m.link_id, _owner_and_place(found.links.get(m.link_id))[1], m.target),
        shown=SHOWN_OF_ADVICE,
    )
    _print_list(
        "these pages answer, and may be others than were meant: have a look",
        ("LINK", "WHY", "ENDED AT"),
        found.suspected_pages,
        lambda s: (s.link_id, ", ".join(s.suspicions), s.final_url),
        shown=SHOWN_OF_ADVICE,
    )
    _print_list(
        "certificates that end within 21 days of the look",
        ("HOST", "ENDS", "DAYS LEFT", "LINKS"),
        found.ending_certificates,
        lambda c: (c.host, c.not_after, c.days_left, c.links),
        shown=SHOWN_OF_ADVICE,
    )
    _print_list(
        "slowest hosts",
        ("HOST", "ANSWERS", "MEDIAN MS", "95 % MS"),
        found.slowest_hosts,
        lambda h: (h.host, h.answers, h.median_ms, h.p95_ms),
        shown=SHOWN_OF_ADVICE,
    )
    _print_list(
        "least available, of the weeks with a verdict",
        ("LINK", "FOUND", "OF WEEKS", "SHARE", "95 % INTERVAL"),
        found.availability,
        lambda a: (a.link_id, a.reachable, a.reachable + a.broken, *_share(a)),
        shown=SHOWN_OF_ADVICE,
    )


def _share(found: LinkAvailability) -> tuple[str, str]:
    from linkwatch_pipeline.domain.coverage import percent

    low, high = found.interval or (None, None)
    return percent(found.share), f"{percent(low)} to {percent(high)}"


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


def _print_score(score: Score) -> None:
    """The same sentence as the page begins with."""
    parts = f"{score.broken} broken, {score.text_missing} without the expected text, {score.moved} moved for good"
    say(f"\nto mend: {score.to_mend} ({parts})")


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


def _print_list(
    title: str,
    headers: Sequence[str],
    found: Ranked[T],
    row: Callable[[T], Sequence[object]],
    shown: int = SHOWN,
) -> None:
    if found.rows:
        say(f"\n{title}")
        print_table(headers, (row(each) for each in found.rows[:shown]))
        _print_rest(found.total - shown)


def _print_rest(rest: int) -> None:
    if rest > 0:
        say(f"and {rest} more; see --json")


def _run(week: WeekCount) -> str:
    from linkwatch_pipeline.domain.runs import COUNTED

    if week.run_state is None:
        return "no run is known"
    if week.counts is None:
        return "missed: nobody ran it"
    ends = {end: week.counts.by_end[end] for end in COUNTED if end in week.counts.by_end}
    return f"{week.run_state.value}, {week.counts.terminal} of {week.counts.expected} jobs ended: {_counts(ends)}"


def _counts(by_name: Mapping[str, int] | Mapping[Reason, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in by_name.items()) or "nothing yet"


def _owner_and_place(link: Link | None) -> tuple[str | None, str | None]:
    if link is None:
        return None, None
    places = [f"{place.file}:{place.line}" for place in link.places]
    more = f" (+{len(places) - 1})" if len(places) > 1 else ""
    owner = link.owner or "nobody"
    return f"{owner} (retired)" if link.retired_at is not None else owner, f"{places[0]}{more}" if places else None
