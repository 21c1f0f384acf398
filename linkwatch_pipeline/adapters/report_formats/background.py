"""The sections of the report that help to find a cause: owners, hosts, files, times, and the weeks before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwatch_pipeline.adapters.report_formats.table import (
    LINK_COLUMNS,
    Cell,
    Column,
    Part,
    Section,
    Sections,
    numbers,
)
from linkwatch_pipeline.adapters.report_formats.words import NOBODY, OUTCOME_WORDS
from linkwatch_pipeline.domain.coverage import WeekCount, percent
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import week_key


def background(report: CoverageReport, *, most: int) -> Part:
    """Hosts, files and times: what helps to find a cause."""
    made = _BackgroundSections(report, most)
    return Part(
        key="background",
        title="By owner, host and file",
        says="Each link once, by its last look of the week's runs; a link that stands in several files in each.",
        sections=(
            made.groups("by_owner", "By owner", "owner"),
            made.groups("by_host", "By host", "host"),
            made.groups("by_file", "By handbook file", "file"),
            made.worst_hosts(),
            made.slowest_hosts(),
            made.availability(),
        ),
    )


def availability_of(report: CoverageReport, *, most: int) -> Section:
    """How often each link was found."""
    return _BackgroundSections(report, most).availability()


def weeks_section(weeks: Sequence[WeekCount], *, most: int) -> Section:
    """The weeks with their coverage and outcomes, the newest first."""
    return Section(
        key="weeks",
        title="Week by week",
        says="Coverage: jobs with a verdict, of those to be checked. Completeness: jobs that ended, of those expected.",
        empty="No week is known.",
        columns=(
            Column(label="week"),
            Column(label="run"),
            *numbers("coverage", "completeness", "links", *OUTCOME_WORDS.values()),
        ),
        rows=tuple(_week_row(week) for week in weeks[:most]),
        total=len(weeks),
    )


class _BackgroundSections(Sections):
    """Tables of what many links have in common."""

    def groups(self, name: str, title: str, what: str) -> Section:
        return self.section(
            getattr(self.report, name),
            lambda g: (g.name if g.name is not None else NOBODY, g.links, *(g.count(o) for o in OUTCOME_WORDS)),
            (Column(label=what), *numbers("links", *OUTCOME_WORDS.values())),
            key=name,
            title=title,
            says=f"The links of each {what}, those with the most broken ones first.",
            empty="No link was looked at in this week.",
        )

    def worst_hosts(self) -> Section:
        return self.section(
            self.report.worst_hosts,
            lambda h: (h.host, h.links, h.broken, h.uncertain, h.throttled, _counts(h.reasons)),
            (Column(label="host"), *numbers("links", "broken", "uncertain", "throttled"), Column(label="reasons")),
            key="worst_hosts",
            title="Hosts in trouble",
            says="The hosts with the most links broken, uncertain or throttled.",
            empty="No host is in trouble.",
        )

    def slowest_hosts(self) -> Section:
        return self.section(
            self.report.slowest_hosts,
            lambda h: (h.host, h.answers, h.median_ms, h.p95_ms, h.slowest_ms),
            (Column(label="host"), *numbers("answers", "median ms", "95 % below ms", "slowest ms")),
            key="slowest_hosts",
            title="Slowest hosts",
            says="By the median time of their answers, redirects included.",
            empty="No host answered in this week.",
        )

    def availability(self) -> Section:
        def interval(bounds: tuple[float, float] | None) -> str:
            return "no data" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"

        weeks = map(_in_weeks, numbers("found", "broken", "unsure", "no data"))
        return self.section(
            self.report.availability,
            lambda a: (
                *self.link(a.link_id), a.url, percent(a.share), interval(a.interval), a.reachable, a.broken, a.unsure,
                a.no_data,
            ),
            (*LINK_COLUMNS, *numbers("available"), Column(label="95 % interval"), *weeks),
            key="availability",
            title="Availability by link",
            says=(
                "Links that were broken in any of the last 52 weeks, the least available first. Available: found, of "
                "the weeks with a verdict; weeks unsure or without data are in neither."
            ),
            empty="No link was broken in the last 52 weeks.",
        )  # fmt: skip


def _in_weeks(column: Column) -> Column:
    return Column(label=f"weeks {column.label}", kind=column.kind)


def _counts(reasons: Mapping[Any, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.items())


def _week_row(week: WeekCount) -> tuple[Cell, ...]:
    return (
        week_key(week.week),
        week.run_state.value if week.run_state is not None else None,
        percent(week.coverage),
        percent(week.completeness),
        *(("no data",) * 6 if week.links is None else (week.links_seen, *(week.count(o) for o in OUTCOME_WORDS))),
    )
