"""A report in memory with a row in every list, and what hostile people would write into it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty, WeekCount
from linkwatch_pipeline.domain.findings import (
    EndingCertificate,
    GroupCount,
    LinkAvailability,
    LinkChange,
    LinkEnd,
    MovedLink,
    SlowHost,
    SuspectedPage,
    Suspicion,
)
from linkwatch_pipeline.domain.links import Link, Place
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.report import CoverageReport, WeekExport
from linkwatch_pipeline.domain.runs import RunCounts, RunState
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY, a_link

# Each could do harm in some format: markup, quotes, formulas, ends of sections, what cannot be seen, sheer length.
HOSTILE = (
    "https://h.example/<script>alert(1)</script>",
    "https://h.example/\"'><img src=x onerror=alert(1)>",
    "javascript:alert(document.domain)",
    "data:text/html,<script>alert(1)</script>",
    "=HYPERLINK(\"http://evil.example\",\"click\")",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\uff1d1+1",
    "]]><evil/><![CDATA[",
    "--><script>alert(1)</script><!--",
    "https://h.example/\u202egpj.exe",
    "https://h.example/\x00\x07\x1b[2J\ufffe\ud800",
    "a|b `c` [d](javascript:alert(1)) ![e](http://evil.example/e.png) *f* _g_ <b>h</b> \\",
    "line\r\nbreak\u2028\n# heading\n\n| table |",
    "{{ 7*7 }}{% raw %}${7*7}",
    "@everyone #1 :tada:",
    "x" * 10_000,
)  # fmt: skip
LISTS = ("newly_broken", "still_broken", "recovered", "content_changed", "moved_for_good", "repeated_uncertainty")


def ranked(*rows: Any) -> Ranked[Any]:
    return Ranked(rows=rows, total=len(rows))


def a_week(weeks_ago: int = 0, **outcomes: int) -> WeekCount:
    """A closed week whose links ended so; without any it is a week of which nothing is known."""
    week = MONDAY - weeks_ago * WEEK
    if not outcomes:
        return WeekCount(week=week)
    counts = RunCounts(expected=sum(outcomes.values()), by_end=outcomes)
    links = {Outcome(name): count for name, count in outcomes.items()}
    return WeekCount(week=week, run_state=RunState.CLOSED, counts=counts, links=links)


def an_empty_report() -> CoverageReport:
    """Nothing was ever looked at."""
    nothing: dict[str, Any] = {
        name: Ranked()
        for name in (*LISTS, "by_owner", "by_host", "by_file", "worst_hosts", "suspected_pages", "ending_certificates")
    }
    export = WeekExport(week=MONDAY, rows=0, written=False)
    weeks = (WeekCount(week=MONDAY),)
    return CoverageReport(
        exported=export, weeks=weeks, slowest_hosts=Ranked(), availability=Ranked(), links={}, **nothing
    )


def a_report(*urls: str) -> CoverageReport:
    """Every list has a row for each of the URLs, and each link a place of a name as hostile as its URL."""
    urls = urls or ("https://docs.example/guide",)
    rows = [(f"link-{number}", url) for number, url in enumerate(urls)]
    since, good = MONDAY + timedelta(minutes=1), MONDAY - 5 * WEEK
    changes = [
        LinkChange(link_id=i, url=u, since=since, last_good=good, status=404, seen=Outcome.BROKEN) for i, u in rows
    ]
    earlier = [replace(change, link_id=f"{change.link_id}-old", since=good, last_good=None) for change in changes]
    groups = [GroupCount(name=u, links=3, outcomes={Outcome.REACHABLE: 2, Outcome.BROKEN: 1}) for _, u in rows]
    links = [_link(i, u) for i, u in rows]
    links += [replace(link, id=f"{link.id}-old", owner=None, places=()) for link in links]
    return CoverageReport(
        exported=WeekExport(week=MONDAY, rows=5, written=True),
        weeks=(a_week(reachable=6, broken=2, uncertain=1, content_changed=1), a_week(1), a_week(2, reachable=9)),
        by_owner=ranked(
            GroupCount(name="docs-team", links=9, outcomes={Outcome.BROKEN: 2}),
            GroupCount(name=None, links=1, outcomes={Outcome.BROKEN: 1}),
        ),
        by_host=ranked(*groups),
        by_file=ranked(*groups),
        worst_hosts=ranked(
            *(
                HostTrouble(host=u, links=3, broken=1, uncertain=1, throttled=0, reasons={Reason.GONE: 1})
                for _, u in rows
            )
        ),
        newly_broken=ranked(*changes),
        recovered=ranked(*changes[:1]),
        still_broken=ranked(*earlier),
        repeated_uncertainty=ranked(
            *(
                RepeatedUncertainty(
                    link_id=i, url=u, weeks=3, since=good, reason=Reason.TIMEOUT, reasons=(Reason.DNS, Reason.TIMEOUT)
                )
                for i, u in rows
            )
        ),
        content_changed=ranked(
            *(ChangedContent(link_id=i, url=u, observed_at=since, status=200, final_url=u) for i, u in rows)
        ),
        moved_for_good=ranked(*(MovedLink(link_id=i, url=u, target=u, hops=1, since=since) for i, u in rows)),
        suspected_pages=ranked(
            *(
                SuspectedPage(
                    link_id=i,
                    url=u,
                    final_url=u,
                    suspicions=(Suspicion.FRONT_PAGE, Suspicion.PAGE_HINT),
                    hints=(u,),
                    others=3,
                    observed_at=since,
                )
                for i, u in rows
            )
        ),
        ending_certificates=ranked(
            *(EndingCertificate(host=u, not_after=MONDAY + WEEK, days_left=7, links=2, example=u) for _, u in rows)
        ),
        slowest_hosts=ranked(
            *(SlowHost(host=u, answers=5, median_ms=1200, p95_ms=2300, slowest_ms=9000) for _, u in rows)
        ),
        availability=ranked(
            *(LinkAvailability(link_id=i, url=u, reachable=20, broken=3, unsure=2, no_data=1) for i, u in rows)
        ),
        links={link.id: link for link in links},
        problems=urls,
    )


def ends_of(report: CoverageReport) -> list[LinkEnd]:
    """The links of `a_report` by their last look, and one of each outcome beside them."""
    broken = [
        LinkEnd(link_id=change.link_id, url=change.url, outcome=Outcome.BROKEN, reason=Reason.GONE, latency_ms=120)
        for change in report.newly_broken.rows
    ]
    others = [
        LinkEnd(link_id=f"other-{outcome}", url="https://docs.example/", outcome=outcome, reason=None, latency_ms=None)
        for outcome in Outcome
    ]
    return [*broken, *others]


def _link(link_id: str, url: str) -> Link:
    """Not through the door for URLs: this is about what would happen if that let something in."""
    places = (Place(file=f"docs/{url}.md", line=3), Place(file="b c.md", line=1))
    return replace(a_link(link_id, "https://docs.example/", places=places, marker="Guide"), url=url)
