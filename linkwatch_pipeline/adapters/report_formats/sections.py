"""The sections of the report that ask something of their reader, in the order in which it matters."""

from __future__ import annotations

from collections.abc import Sequence

from linkwatch_pipeline.adapters.report_formats.table import (
    LINK_COLUMNS,
    Cell,
    Column,
    Kind,
    Part,
    Section,
    Sections,
    numbers,
    url_column,
)
from linkwatch_pipeline.adapters.report_formats.words import SUSPICION_WORDS, outcome_word
from linkwatch_pipeline.domain.coverage import Ranked
from linkwatch_pipeline.domain.findings import LinkChange, Suspicion
from linkwatch_pipeline.domain.report import CoverageReport


def parts(report: CoverageReport, *, most: int) -> tuple[Part, ...]:
    """The report but for its counts by week, each table cut at `most` rows."""
    made = _LinkSections(report, most)
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


class _LinkSections(Sections):
    """Tables of links, but for the certificates of their hosts."""

    def changes(self, name: str, title: str, says: str, empty: str) -> Section:
        found: Ranked[LinkChange] = getattr(self.report, name)
        times = ("found since",) if name == "recovered" else ("broken since", "good from")  # until it broke
        columns = tuple(Column(label=label, kind=Kind.MOMENT) for label in times)

        def row(change: LinkChange) -> tuple[Cell, ...]:
            moments = (change.since, change.last_good)[: len(columns)]
            return (*self.link(change.link_id), change.url, *moments, change.status, outcome_word(change.seen))

        titled = {"key": name, "title": title, "says": says, "empty": empty}
        return self.section(
            found, row, (*LINK_COLUMNS, *columns, *numbers("status"), Column(label="this week")), **titled
        )

    def content_changed(self) -> Section:
        return self.section(
            self.report.content_changed,
            lambda c: (*self.link(c.link_id), c.url, self._marker(c.link_id), c.observed_at, c.final_url),
            (
                *LINK_COLUMNS,
                Column(label="expected text"),
                Column(label="seen", kind=Kind.MOMENT),
                url_column("ended at"),
            ),
            key="content_changed",
            title="Without the expected text",
            says="The page answered without the text that was asked of it.",
            empty="Every page that was found had the text expected of it.",
        )

    def moved_for_good(self) -> Section:
        return self.section(
            self.report.moved_for_good,
            lambda m: (*self.link(m.link_id), m.url, m.target, m.hops, m.since),
            (*LINK_COLUMNS, url_column("new address"), *numbers("hops"), Column(label="since", kind=Kind.MOMENT)),
            key="moved_for_good",
            title="Moved for good",
            says=(
                "Redirected by 301 or 308 alone to the same address, twice. "
                "linkwatch report --patches writes the change."
            ),
            empty="No page moved for good.",
        )

    def repeated_uncertainty(self) -> Section:
        return self.section(
            self.report.repeated_uncertainty,
            lambda r: (*self.link(r.link_id), r.url, r.weeks, r.since, r.reason, ", ".join(r.reasons)),
            (
                *LINK_COLUMNS,
                *numbers("weeks in a row"),
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

        return self.section(
            self.report.suspected_pages,
            lambda s: (*self.link(s.link_id), s.url, why(s.suspicions, s.hints), s.final_url, s.others),
            (*LINK_COLUMNS, Column(label="why"), url_column("ended at"), *numbers("links with the same page")),
            key="suspected_pages",
            title="Perhaps another page than was meant",
            says="Pages that answer, and may be an error page in disguise or a parked domain.",
            empty="No page looks like another than was meant.",
        )

    def ending_certificates(self) -> Section:
        return self.section(
            self.report.ending_certificates,
            lambda c: (c.host, c.not_after, c.days_left, c.links, c.example),
            (
                Column(label="host"),
                Column(label="ends", kind=Kind.MOMENT),
                *numbers("days left", "links"),
                url_column("one of them"),
            ),
            key="ending_certificates",
            title="Certificates that end soon",
            says="Within 21 days of the look. Most are renewed in time; tell the host's people if it is yours.",
            empty="No certificate ends within 21 days.",
        )

    def _marker(self, link_id: str) -> Cell:
        link = self.report.links.get(link_id)
        return link.marker if link is not None else None
