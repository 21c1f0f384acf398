"""The findings of a report as remarks on lines of the handbook, for pipelines: what SARIF and CSV are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from linkwatch_pipeline.adapters.report_formats.words import SUSPICION_WORDS
from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.report import CoverageReport


class Level(StrEnum):
    """How loud a remark is, in SARIF's words. Only what is broken for certain is an error."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Rule(StrEnum):
    """What a remark is about."""

    NEWLY_BROKEN = "newly_broken"
    STILL_BROKEN = "still_broken"
    CONTENT_CHANGED = "content_changed"
    MOVED_FOR_GOOD = "moved_for_good"
    REPEATED_UNCERTAINTY = "repeated_uncertainty"
    SUSPECTED_PAGE = "suspected_page"
    ENDING_CERTIFICATE = "ending_certificate"


LEVELS = {
    Rule.NEWLY_BROKEN: Level.ERROR,
    Rule.STILL_BROKEN: Level.ERROR,
    Rule.CONTENT_CHANGED: Level.WARNING,
    Rule.MOVED_FOR_GOOD: Level.WARNING,
    Rule.REPEATED_UNCERTAINTY: Level.NOTE,
    Rule.SUSPECTED_PAGE: Level.NOTE,
    Rule.ENDING_CERTIFICATE: Level.NOTE,
}
MEANINGS = {
    Rule.NEWLY_BROKEN: "The link broke in this week.",
    Rule.STILL_BROKEN: "The link was broken before this week and was not found since.",
    Rule.CONTENT_CHANGED: "The page answers without the text expected of it.",
    Rule.MOVED_FOR_GOOD: "The page moved for good; the link can name the new address.",
    Rule.REPEATED_UNCERTAINTY: "Nobody knows, week after week, whether the page is there. That is not broken.",
    Rule.SUSPECTED_PAGE: "The page answers and may be another than was meant: advice to a person.",
    Rule.ENDING_CERTIFICATE: "The host's certificate ends soon: advice to a person.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One remark on one link. `places` may be empty; `link_id` is None for a remark on a host."""

    rule: Rule
    link_id: str | None
    url: str
    owner: str | None
    places: tuple[Place, ...]
    since: datetime | None
    status: int | None
    detail: str

    @property
    def level(self) -> Level:
        return LEVELS[self.rule]


def annotate(report: CoverageReport) -> Iterator[Annotation]:
    """The remarks, errors first, each list in the report's order."""
    for rule, changes in ((Rule.NEWLY_BROKEN, report.newly_broken), (Rule.STILL_BROKEN, report.still_broken)):
        for change in changes.rows:
            seen = f"HTTP {change.status}" if change.status is not None else "no answer"
            detail = f"broken since {change.since:%Y-%m-%d}: {seen}"
            yield _on_link(report, rule, change.link_id, change.url, detail, change.since, change.status)
    for changed in report.content_changed.rows:
        detail = "answers without the expected text"
        at, status = changed.observed_at, changed.status
        yield _on_link(report, Rule.CONTENT_CHANGED, changed.link_id, changed.url, detail, at, status)
    for moved in report.moved_for_good.rows:
        detail = f"moved for good to {moved.target}"
        yield _on_link(report, Rule.MOVED_FOR_GOOD, moved.link_id, moved.url, detail, moved.since)
    for again in report.repeated_uncertainty.rows:
        detail = f"uncertain for {again.weeks} weeks in a row: {', '.join(again.reasons) or 'no reason known'}"
        yield _on_link(report, Rule.REPEATED_UNCERTAINTY, again.link_id, again.url, detail, again.since)
    for page in report.suspected_pages.rows:
        detail = "; ".join(SUSPICION_WORDS[each] for each in page.suspicions)
        yield _on_link(report, Rule.SUSPECTED_PAGE, page.link_id, page.url, detail, page.observed_at)
    for ending in report.ending_certificates.rows:
        yield Annotation(
            rule=Rule.ENDING_CERTIFICATE,
            link_id=None,
            url=ending.example,
            owner=None,
            places=(),
            since=None,
            status=None,
            detail=f"the certificate of {ending.host} ends on {ending.not_after:%Y-%m-%d}; {ending.links} links",
        )


def _on_link(
    report: CoverageReport,
    rule: Rule,
    link_id: str,
    url: str,
    detail: str,
    since: datetime,
    status: int | None = None,
) -> Annotation:
    link = report.links.get(link_id)
    return Annotation(
        rule=rule,
        link_id=link_id,
        url=url,
        owner=link.owner if link is not None else None,
        places=link.places if link is not None else (),
        since=since,
        status=status,
        detail=detail,
    )
