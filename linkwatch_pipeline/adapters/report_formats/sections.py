"""The sections of the report as tables: what every format for people shows, in the order in which it matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from linkwatch_pipeline.domain.coverage import Ranked, WeekCount, percent
from linkwatch_pipeline.domain.findings import LinkChange, Suspicion
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import week_key

T = TypeVar("T")
Cell = str | int | datetime | None

NOBODY = "nobody"
OUTCOME_WORDS = {
    Outcome.REACHABLE: "reachable",
    Outcome.BROKEN: "broken",
    Outcome.UNCERTAIN: "uncertain",
    Outcome.THROTTLED: "throttled",
    Outcome.CONTENT_CHANGED: "text missing",
}
SUSPICION_WORDS = {
    Suspicion.FRONT_PAGE: "a deep link ends at a front page",
    Suspicion.ERROR_PAGE: "the address it ends at names an error page",
    Suspicion.SAME_PAGE: "other links of the host gave the very same page",
    Suspicion.OTHER_SITE: "it ends on another site, where it once ended on its own",
    Suspicion.PARKING_HOST: "it ends at a service that parks domains",
    Suspicion.PAGE_HINT: "the page itself says so",
}


class Kind(StrEnum):
    """How a column is shown and sorted."""

    TEXT = "text"
    NUMBER = "number"  # counts, shares, times
    URL = "url"
    MOMENT = "moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    label: str
    kind: Kind = Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table with its title, what it says, and what is said when it is empty. `total` counts rows cut off too."""

    key: str
    title: str
    says: str
    empty: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Sections that ask the same of their reader."""

    key: str
    title: str
    says: str
    sections: tuple[Section, ...]


def parts(report: CoverageReport, *, most: int) -> tuple[Part, ...]:
    """The report but for its counts by week, each table cut at `most` rows."""
    made = _Maker(report, most)
    return (
        Part(
            key="mend",
            title="To mend",
            says="What somebody can mend in the handbook. This is what the score counts.",
            sections=(
                made.changes("newly_broken", "Newly broken", "Broke in this week.", "No link broke in this week."),
                made.changes(
                    "still_broken",
                    "Still broken",
                    "Broken before this week and not found since, the longest first.",
                    "No link was broken before this week and still is.",
                ),
                made.content_changed(),
                made.moved_for_good(),
            ),
        ),
        Part(
            key="good",
            title="Good news",
            says="Nothing is asked of you here.",
            sections=(made.changes("recovered", "Recovered", "Came back in this week.", "No link came back."),),
        ),
        Part(
            key="unsure",
            title="Nobody knows",
            says="Uncertain is not down: these are not in the score.",
            sections=(made.repeated_uncertainty(),),
        ),
        Part(
            key="advice",
            title="Advice: have a look",
            says="Guesses for a person to judge. No state, no notice and no score comes of them.",
            sections=(made.suspected_pages(), made.ending_certificates()),
        ),
    )


def background(report: CoverageReport, *, most: int) -> Part:
    """Hosts, files and times: what helps to find a cause."""
    made = _Maker(report, most)
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
    return _Maker(report, most).availability()


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
            *_numbers("coverage", "completeness", "links", *OUTCOME_WORDS.values()),
        ),
        rows=tuple(_week_row(week) for week in weeks[:most]),
        total=len(weeks),
    )


def place_of(link: Link | None) -> str | None:
    """Where a link stands: the first place, and how many more there are."""
    if link is None or not link.places:
        return None
    more = f" (+{len(link.places) - 1})" if len(link.places) > 1 else ""
    return f"{link.places[0].file}:{link.places[0].line}{more}"


def owner_word(link: Link | None) -> str | None:
    """The owner as people read it; None if the link is not known."""
    if link is None:
        return None
    return f"{link.owner or NOBODY} (retired)" if link.retired_at is not None else link.owner or NOBODY


@dataclass(frozen=True, slots=True)
class _Maker:
    report: CoverageReport
    most: int

    def changes(self, name: str, title: str, says: str, empty: str) -> Section:
        found: Ranked[LinkChange] = getattr(self.report, name)
        times = ("found since",) if name == "recovered" else ("broken since", "good from")  # until it broke
        columns = tuple(Column(label=label, kind=Kind.MOMENT) for label in times)

        def row(change: LinkChange) -> tuple[Cell, ...]:
            moments = (change.since, change.last_good)[: len(columns)]
            return (*self._link(change.link_id), change.url, *moments, change.status, _word(change.seen))

        titled = {"key": name, "title": title, "says": says, "empty": empty}
        return self._section(found, row, (*_LINK, *columns, *_numbers("status"), Column(label="this week")), **titled)

    def content_changed(self) -> Section:
        return self._section(
            self.report.content_changed,
            lambda c: (*self._link(c.link_id), c.url, self._marker(c.link_id), c.observed_at, c.final_url),
            (*_LINK, Column(label="expected text"), Column(label="seen", kind=Kind.MOMENT), _url("ended at")),
            key="content_changed",
            title="Without the expected text",
            says="The page answered without the text that was asked of it.",
            empty="Every page that was found had the text expected of it.",
        )

    def moved_for_good(self) -> Section:
        return self._section(
            self.report.moved_for_good,
            lambda m: (*self._link(m.link_id), m.url, m.target, m.hops, m.since),
            (*_LINK, _url("new address"), *_numbers("hops"), Column(label="since", kind=Kind.MOMENT)),
            key="moved_for_good",
            title="Moved for good",
            says=(
                "Redirected by 301 or 308 alone to the same address, twice. "
                "linkwatch report --patches writes the change."
            ),
            empty="No page moved for good.",
        )

    def repeated_uncertainty(self) -> Section:
        return self._section(
            self.report.repeated_uncertainty,
            lambda r: (*self._link(r.link_id), r.url, r.weeks, r.since, r.reason, ", ".join(r.reasons)),
            (
                *_LINK,
                *_numbers("weeks in a row"),
                Column(label="since", kind=Kind.MOMENT),
                Column(label="reason this week"),
                Column(label="all reasons"),
            ),
            key="repeated_uncertainty",
            title="Uncertain week after week",
            says="No look told whether the page is there, two weeks or more in a row.",
            empty="No link was uncertain two weeks in a row.",
        )

    def suspected_pages(self) -> Section:
        def why(suspicions: Sequence[Suspicion], hints: Sequence[str]) -> str:
            words = [SUSPICION_WORDS[each] for each in suspicions]
            return "; ".join([*words, *(["it has: " + ", ".join(hints)] if hints else [])])

        return self._section(
            self.report.suspected_pages,
            lambda s: (*self._link(s.link_id), s.url, why(s.suspicions, s.hints), s.final_url, s.others),
            (*_LINK, Column(label="why"), _url("ended at"), *_numbers("links with the same page")),
            key="suspected_pages",
            title="Perhaps another page than was meant",
            says="Pages that answer, and may be an error page in disguise or a parked domain.",
            empty="No page looks like another than was meant.",
        )

    def ending_certificates(self) -> Section:
        return self._section(
            self.report.ending_certificates,
            lambda c: (c.host, c.not_after, c.days_left, c.links, c.example),
            (
                Column(label="host"),
                Column(label="ends", kind=Kind.MOMENT),
                *_numbers("days left", "links"),
                _url("one of them"),
            ),
            key="ending_certificates",
            title="Certificates that end soon",
            says="Within 21 days of the look. Most are renewed in time; tell the host's people if it is yours.",
            empty="No certificate ends within 21 days.",
        )

    def groups(self, name: str, title: str, what: str) -> Section:
        return self._section(
            getattr(self.report, name),
            lambda g: (g.name if g.name is not None else NOBODY, g.links, *(g.count(o) for o in OUTCOME_WORDS)),
            (Column(label=what), *_numbers("links", *OUTCOME_WORDS.values())),
            key=name,
            title=title,
            says=f"The links of each {what}, those with the most broken ones first.",
            empty="No link was looked at in this week.",
        )

    def worst_hosts(self) -> Section:
        return self._section(
            self.report.worst_hosts,
            lambda h: (h.host, h.links, h.broken, h.uncertain, h.throttled, _counts(h.reasons)),
            (Column(label="host"), *_numbers("links", "broken", "uncertain", "throttled"), Column(label="reasons")),
            key="worst_hosts",
            title="Hosts in trouble",
            says="The hosts with the most links broken, uncertain or throttled.",
            empty="No host is in trouble.",
        )

    def slowest_hosts(self) -> Section:
        return self._section(
            self.report.slowest_hosts,
            lambda h: (h.host, h.answers, h.median_ms, h.p95_ms, h.slowest_ms),
            (Column(label="host"), *_numbers("answers", "median ms", "95 % below ms", "slowest ms")),
            key="slowest_hosts",
            title="Slowest hosts",
            says="By the median time of their answers, redirects included.",
            empty="No host answered in this week.",
        )

    def availability(self) -> Section:
        def interval(bounds: tuple[float, float] | None) -> str:
            return "no data" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"

        weeks = _numbers("found", "broken", "unsure", "no data")
        return self._section(
            self.report.availability,
            lambda a: (
                *self._link(a.link_id), a.url, percent(a.share), interval(a.interval), a.reachable, a.broken, a.unsure,
                a.no_data,
            ),
            (*_LINK, *_numbers("available"), Column(label="95 % interval"), *(_in_weeks(column) for column in weeks)),
            key="availability",
            title="Availability by link",
            says=(
                "Links that were broken in any of the last 52 weeks, the least available first. Available: found, of "
                "the weeks with a verdict; weeks unsure or without data are in neither."
            ),
            empty="No link was broken in the last 52 weeks.",
        )  # fmt: skip

    def _section(
        self, found: Ranked[T], row: Callable[[T], tuple[Cell, ...]], columns: Sequence[Column], **told: Any
    ) -> Section:
        rows = tuple(row(each) for each in found.rows[: self.most])
        return Section(columns=tuple(columns), rows=rows, total=found.total, **told)

    def _link(self, link_id: str) -> tuple[Cell, Cell]:
        link = self.report.links.get(link_id)
        return place_of(link), owner_word(link)

    def _marker(self, link_id: str) -> Cell:
        link = self.report.links.get(link_id)
        return link.marker if link is not None else None


def _numbers(*labels: str) -> tuple[Column, ...]:
    return tuple(Column(label=label, kind=Kind.NUMBER) for label in labels)


def _url(label: str) -> Column:
    return Column(label=label, kind=Kind.URL)


def _in_weeks(column: Column) -> Column:
    return Column(label=f"weeks {column.label}", kind=column.kind)


def _word(outcome: Outcome | None) -> str:
    return OUTCOME_WORDS[outcome] if outcome is not None else "nobody looked"


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


_LINK = (Column(label="place"), Column(label="owner"), _url("link"))
