"""The week as JUnit XML: one test case for each link. Only a link that is broken for certain fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from linkwatch_pipeline.adapters.report_formats.inert import visible
from linkwatch_pipeline.adapters.report_formats.words import place_of
from linkwatch_pipeline.domain.findings import LinkChange, LinkEnd
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import week_key

_SKIPPED = {
    Outcome.BROKEN: "not there in this look, and not confirmed yet",
    Outcome.UNCERTAIN: "uncertain: nobody knows whether it is there",
    Outcome.THROTTLED: "throttled: the host asked us to stay away",
    Outcome.CONTENT_CHANGED: "answers without the expected text: have a look",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    link_id: str
    url: str
    seconds: float
    failure: str | None = None
    skipped: str | None = None


def junit_report(report: CoverageReport, ends: Iterable[LinkEnd]) -> Iterator[str]:
    """The document in pieces. `report` has to be whole: what its lists leave out would pass.

    Args: ends: each link of the week by its last look.
    """
    cases = list(_cases(report, ends))
    name = quoteattr(f"links of week {week_key(report.this_week.week)}")
    counts = (
        f'tests="{len(cases)}" failures="{sum(1 for case in cases if case.failure)}" errors="0" '
        f'skipped="{sum(1 for case in cases if case.skipped)}" time="{sum(case.seconds for case in cases):.3f}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="linkwatch" {counts}>\n<testsuite name={name} {counts}>\n'
    for case in cases:
        yield ElementTree.tostring(_element(case, report), encoding="unicode") + "\n"
    yield "</testsuite>\n</testsuites>\n"


def _cases(report: CoverageReport, ends: Iterable[LinkEnd]) -> Iterator[_Case]:
    broken = {change.link_id: change for found in (report.newly_broken, report.still_broken) for change in found.rows}
    for end in ends:
        change = broken.pop(end.link_id, None)
        failure = _broken(change) if change is not None else None
        skipped = None if failure is not None else _skipped(end)
        seconds = (end.latency_ms or 0) / 1000
        yield _Case(link_id=end.link_id, url=end.url, seconds=seconds, failure=failure, skipped=skipped)
    for change in broken.values():  # nobody looked this week, or the last look was of another URL
        yield _Case(link_id=change.link_id, url=change.url, seconds=0, failure=_broken(change))


def _broken(change: LinkChange) -> str:
    status = f"HTTP {change.status}" if change.status is not None else "no answer"
    good = f"; good from {change.last_good:%Y-%m-%d} until then" if change.last_good is not None else ""
    return f"broken since {change.since:%Y-%m-%d}: {status}{good}"


def _skipped(end: LinkEnd) -> str | None:
    words = _SKIPPED.get(end.outcome)
    return f"{words} ({end.reason})" if words is not None and end.reason is not None else words


def _element(case: _Case, report: CoverageReport) -> ElementTree.Element:
    link = report.links.get(case.link_id)
    owner = (link.owner if link is not None else None) or "linkwatch"
    told = {"classname": visible(owner), "name": visible(f"{case.link_id} {case.url}"), "time": f"{case.seconds:.3f}"}
    if link is not None and link.places:
        told |= {"file": visible(link.places[0].file), "line": str(link.places[0].line)}
    element = ElementTree.Element("testcase", told)
    if case.failure is not None:
        failure = ElementTree.SubElement(element, "failure", {"message": case.failure, "type": "broken"})
        failure.text = visible(f"{case.url} at {place_of(link) or 'no known place'}")
    elif case.skipped is not None:
        ElementTree.SubElement(element, "skipped", {"message": case.skipped})
    return element
