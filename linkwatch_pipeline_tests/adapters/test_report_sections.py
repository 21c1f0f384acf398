"""The lists of the report, each on a few looks whose answer one can see: what is in them, and what must not be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.reports.duckdb_reports import PARKING_SERVICES, DuckDBReports
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.domain.coverage import Ranked
from linkwatch_pipeline.domain.findings import (
    ChangeKind,
    EndingCertificate,
    GroupCount,
    Grouping,
    LinkAvailability,
    LinkEnd,
    MovedLink,
    SlowHost,
    Suspicion,
)
from linkwatch_pipeline.domain.links import Link, LinkState, Place
from linkwatch_pipeline.domain.notices import notice_for
from linkwatch_pipeline.domain.observations import Observation, RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, week_start
from linkwatch_pipeline.domain.transitions import Transition, advance
from linkwatch_pipeline_tests.builders import MONDAY, a_job, a_link, an_observation

LAST_WEEK = MONDAY - WEEK
MOST = 99


@dataclass
class Weeks:
    """Links and their looks, with the transitions that the state machine makes of them."""

    folder: Path
    links: dict[str, Link] = field(default_factory=dict)
    looks: list[Observation] = field(default_factory=list)
    changes: list[tuple[Link, Transition, Observation]] = field(default_factory=list)

    def watch(self, link_id: str, url: str | None = None, **fields: Any) -> None:
        self.links[link_id] = a_link(link_id, url or f"https://{link_id}.example/page", **fields)

    def look(self, link_id: str, status: int | None, weeks_ago: int = 0, **fields: Any) -> Observation:
        """The weekly run's look, the oldest first."""
        if link_id not in self.links:
            self.watch(link_id)
        link, week = self.links[link_id], MONDAY - weeks_ago * WEEK
        job = a_job(link, run_id=weekly_run_id(week), sequence=link.last_sequence + 1)
        seen = an_observation(link, status, job=job, **{"observed_at": week + timedelta(minutes=1), **fields})
        self.looks.append(seen)
        after, change = advance(
            link,
            outcome=seen.outcome,
            sequence=seen.sequence,
            job_id=seen.job_id,
            at=seen.observed_at,
            default_confirm=1,
        )
        self.links[link_id] = after
        if change is not None:
            self.changes.append((after, change, seen))
        return seen

    def led(self, link_id: str, target: str | None, *statuses: int, weeks_ago: int = 0, **fields: Any) -> Observation:
        """A look that was led to another address, over one hop for each status."""
        url = self.links[link_id].url if link_id in self.links else f"https://{link_id}.example/page"
        hops = tuple(RedirectHop(url=f"{url}#{n}" if n else url, status=status) for n, status in enumerate(statuses))
        return self.look(link_id, fields.pop("status", 200), weeks_ago, final_url=target, redirects=hops, **fields)

    def reports(self) -> DuckDBReports:
        warehouse = ParquetWarehouse(self.folder)
        for week in {week_start(seen.observed_at) for seen in self.looks}:
            warehouse.write_week(week, [seen for seen in self.looks if week_start(seen.observed_at) == week])
            told = [change for change in self.changes if week_start(change[1].at) == week]
            warehouse.write_transitions(week, [transition for _, transition, _ in told])
            warehouse.write_notices(week, [notice_for(*change, now=change[1].at) for change in told])
        warehouse.write_links(self.links.values())
        return DuckDBReports(warehouse.views)


@pytest.fixture
def weeks(tmp_path: Path) -> Weeks:
    return Weeks(tmp_path)


def changed(weeks: Weeks, kind: ChangeKind, week: datetime = MONDAY) -> list[str]:
    return [row.link_id for row in weeks.reports().changes(week, kind=kind, most=MOST).rows]


def test_links_are_counted_by_owner_host_and_file(weeks: Weeks) -> None:
    one, other = Place(file="a.md", line=1), Place(file="b.md", line=2)
    weeks.watch("a", "https://x.example/1", owner="one", places=(one, Place(file="a.md", line=9)))
    weeks.watch("b", "https://x.example/2", owner="one", places=(one, other))
    weeks.watch("c", "https://y.example/", owner="two", places=(other,))
    weeks.watch("d", "https://z.example/", owner=None)
    for link_id, status in {"a": 200, "b": 404, "c": None, "d": 200}.items():
        weeks.look(link_id, status)
    weeks.look("a", 404, -1)
    reports = weeks.reports()
    r, b, u = Outcome.REACHABLE, Outcome.BROKEN, Outcome.UNCERTAIN
    expected: dict[Grouping, list[tuple[str | None, dict[Outcome, int]]]] = {
        Grouping.OWNER: [("one", {r: 1, b: 1}), ("two", {u: 1}), (None, {r: 1})],
        Grouping.HOST: [("x.example", {r: 1, b: 1}), ("y.example", {u: 1}), ("z.example", {r: 1})],
        Grouping.FILE: [("a.md", {r: 1, b: 1}), ("b.md", {b: 1, u: 1})],
    }
    for by, groups in expected.items():
        rows = tuple(GroupCount(name=name, links=sum(count.values()), outcomes=count) for name, count in groups)
        assert reports.groups(MONDAY, by=by, most=MOST) == Ranked(rows=rows, total=len(rows)), by
    assert reports.groups(MONDAY, by=Grouping.OWNER, most=1).total == 3


def test_each_link_of_a_week_is_told_once_by_its_last_look(weeks: Weeks) -> None:
    for link_id, status in {"b": 404, "a": None, "c": 200}.items():
        weeks.look(link_id, status)
    weeks.look("a", 200, 1)
    weeks.look("later", 200, -1)
    assert weeks.reports().link_ends(MONDAY) == [
        LinkEnd(
            link_id=link_id,
            url=f"https://{link_id}.example/page",
            outcome=outcome,
            reason=reason,
            latency_ms=120,
        )
        for link_id, outcome, reason in (
            ("a", Outcome.UNCERTAIN, Reason.TIMEOUT),
            ("b", Outcome.BROKEN, Reason.GONE),
            ("c", Outcome.REACHABLE, None),
        )
    ]
    assert weeks.reports().link_ends(MONDAY + 5 * WEEK) == []


def test_a_link_that_broke_recovered_or_stays_broken_is_in_one_list(weeks: Weeks) -> None:
    for link_id, statuses in {
        "breaks": (200, 404),
        "was-never-good": (None, 404),
        "recovers": (404, 200),
        "stays": (404, 404),
        "nobody-knows": (404, None),
        "fine": (200, 200),
    }.items():
        for weeks_ago, status in zip((1, 0), statuses, strict=True):
            weeks.look(link_id, status, weeks_ago)
    weeks.look("later", 404, -1)
    assert changed(weeks, ChangeKind.NEWLY_BROKEN) == ["breaks", "was-never-good"]
    assert changed(weeks, ChangeKind.RECOVERED) == ["recovers"]
    assert changed(weeks, ChangeKind.STILL_BROKEN) == ["nobody-knows", "stays"]
    assert changed(weeks, ChangeKind.NEWLY_BROKEN, LAST_WEEK) == ["nobody-knows", "recovers", "stays"]
    assert changed(weeks, ChangeKind.NEWLY_BROKEN, MONDAY + WEEK) == ["later"]
    breaks, never = weeks.reports().changes(MONDAY, kind=ChangeKind.NEWLY_BROKEN, most=MOST).rows
    assert (breaks.since, breaks.last_good, breaks.status) == (
        MONDAY + timedelta(minutes=1),
        LAST_WEEK + timedelta(minutes=1),
        404,
    )
    assert never.last_good is None
    seen = {
        row.link_id: row.seen for row in weeks.reports().changes(MONDAY, kind=ChangeKind.STILL_BROKEN, most=MOST).rows
    }
    assert seen == {"stays": Outcome.BROKEN, "nobody-knows": Outcome.UNCERTAIN}


def test_a_broken_link_that_nobody_looked_at_is_still_broken_and_one_that_was_given_up_is_not(weeks: Weeks) -> None:
    for link_id in ("unseen", "retired", "moved"):
        weeks.look(link_id, 404, 3)
    weeks.links["retired"] = replace(weeks.links["retired"], retired_at=MONDAY)
    weeks.links["moved"] = replace(weeks.links["moved"], url="https://elsewhere.example/", state=LinkState.UNKNOWN)
    weeks.look("other", 200)
    [row] = weeks.reports().changes(MONDAY, kind=ChangeKind.STILL_BROKEN, most=MOST).rows
    assert (row.link_id, row.seen) == ("unseen", None)


def test_a_page_moved_for_good_if_two_looks_agree_and_every_hop_says_so(weeks: Weeks) -> None:
    new = "https://new.example/page"
    ways: dict[str, tuple[tuple[str, tuple[int, ...]] | None, tuple[str, tuple[int, ...]] | None]] = {
        "for-good": ((new, (301, 308)), (new, (308,))),
        "once": (None, (new, (301,))),
        "for-now": ((new, (301,)), (new, (301, 302))),
        "was-for-now": ((new, (302,)), (new, (301,))),
        "wanders": (("https://newer.example/", (301,)), (new, (301,))),
        "back-home": ((new, (301,)), None),
    }
    for link_id, (before, now) in ways.items():
        for weeks_ago, way in ((1, before), (0, now)):
            if way is None:
                weeks.look(link_id, 200, weeks_ago)
            else:
                weeks.led(link_id, way[0], *way[1], weeks_ago=weeks_ago)
    weeks.led("gone-there", new, 301, weeks_ago=1)
    weeks.led("gone-there", new, 301, status=404)
    found = weeks.reports().moved_for_good(MONDAY, most=MOST)
    moved = MovedLink(
        link_id="for-good",
        url="https://for-good.example/page",
        target=new,
        hops=1,
        since=LAST_WEEK + timedelta(minutes=1),
    )
    assert found == Ranked(rows=(moved,), total=1)


def test_two_latest_looks_need_not_be_of_neighbouring_weeks(weeks: Weeks) -> None:
    for weeks_ago in (5, 0):
        weeks.led("a", "https://new.example/", 301, weeks_ago=weeks_ago)
    for weeks_ago in (9, 0):
        weeks.led("long-ago", "https://new.example/", 301, weeks_ago=weeks_ago)
    [row] = weeks.reports().moved_for_good(MONDAY, most=MOST).rows
    assert (row.link_id, row.since) == ("a", MONDAY - 5 * WEEK + timedelta(minutes=1))


def test_suspected_pages_say_what_is_odd_about_them(weeks: Weeks) -> None:
    parked = f"https://www.{PARKING_SERVICES[0]}/x"
    weeks.led("front", "https://front.example/", 302)
    weeks.led("error", "https://error.example/errors/404.html", 302)
    weeks.led("parked", parked, 302)
    weeks.look("strayed", 200, 1)
    weeks.led("strayed", "https://other.example/page", 301)
    weeks.look("hinted", 200, page_hints=("for sale",))
    for n in range(3):
        weeks.watch(f"same-{n}", f"https://same.example/{n}")
        weeks.look(f"same-{n}", 200, body=b"Sorry, nothing here")
    found = weeks.reports().suspected_pages(MONDAY, most=MOST)
    assert {row.link_id: set(row.suspicions) for row in found.rows} == {
        "front": {Suspicion.FRONT_PAGE},
        "error": {Suspicion.ERROR_PAGE},
        "parked": {Suspicion.PARKING_HOST},
        "strayed": {Suspicion.OTHER_SITE},
        "hinted": {Suspicion.PAGE_HINT},
        **{f"same-{n}": {Suspicion.SAME_PAGE} for n in range(3)},
    }
    by_id = {row.link_id: row for row in found.rows}
    assert by_id["hinted"].hints == ("for sale",)
    assert (by_id["same-0"].others, by_id["front"].others) == (3, 1)
    assert (by_id["parked"].final_url, by_id["hinted"].final_url) == (parked, "https://hinted.example/page")


def test_what_is_plain_is_not_suspected(weeks: Weeks) -> None:
    weeks.watch("root", "https://root.example/")
    weeks.led("root", "https://root.example/", 301)
    weeks.led("resolver", "https://publisher.example/paper", 302, weeks_ago=1)
    weeks.led("resolver", "https://publisher.example/paper", 302)
    weeks.watch("subdomain", "https://docs.site.co.uk/page")
    weeks.look("subdomain", 200, 1)
    weeks.led("subdomain", "https://www.site.co.uk/page", 301)
    weeks.led("gone", "https://gone.example/", 302, status=404)
    for n in range(2):
        weeks.watch(f"two-{n}", f"https://two.example/{n}")
        weeks.look(f"two-{n}", 200, body=b"alike, and only two")
    for n in range(4):  # alike on hosts of their own: a page that is served in many places
        weeks.look(f"mirror-{n}", 200, body=b"a mirrored page")
    assert weeks.reports().suspected_pages(MONDAY, most=MOST) == Ranked()


def test_certificates_that_end_soon_are_named_by_host(weeks: Weeks) -> None:
    at = MONDAY + timedelta(minutes=1)
    for link_id, days in {"a": 20.5, "b": 21.5, "c": -1.0, "d": 3.0}.items():
        weeks.look(link_id, 200, tls_not_after=at + timedelta(days=days))
    weeks.led("led", "https://d.example/there", 302, tls_not_after=at + timedelta(days=2))
    weeks.look("plain-http", 200)
    found = weeks.reports().ending_certificates(MONDAY, within=timedelta(days=21), most=MOST)
    assert [(row.host, row.days_left, row.links) for row in found.rows] == [
        ("c.example", -1, 1),
        ("d.example", 2, 2),
        ("a.example", 20, 1),
    ]
    assert found.rows[2] == EndingCertificate(
        host="a.example", not_after=at + timedelta(days=20.5), days_left=20, links=1, example="https://a.example/page"
    )


def test_the_slowest_hosts_are_those_that_answer_slowly(weeks: Weeks) -> None:
    for n, latency in enumerate((100, 300, 2_000)):
        weeks.watch(f"s{n}", f"https://slow.example/{n}")
        weeks.look(f"s{n}", 200, latency_ms=latency)
    weeks.look("quick", 404, latency_ms=50)
    weeks.look("silent", None, latency_ms=10_000)
    found = weeks.reports().slowest_hosts(MONDAY, most=MOST)
    assert found.rows[0] == SlowHost(host="slow.example", answers=3, median_ms=300, p95_ms=2_000, slowest_ms=2_000)
    assert [row.host for row in found.rows] == ["slow.example", "quick.example"]


def test_availability_knows_gaps_and_doubts_from_verdicts(weeks: Weeks) -> None:
    for weeks_ago, status in ((6, 404), (5, 200), (4, None), (2, 429), (1, 200), (0, 200)):
        weeks.look("a", status, weeks_ago)
    weeks.look("worse", 404, 1)
    weeks.look("worse", None)
    weeks.look("never-broken", 200)
    weeks.look("not-looked-at-now", 404, 1)
    found = weeks.reports().availability(MONDAY, weeks=7, most=MOST)
    a = LinkAvailability(link_id="a", url="https://a.example/page", reachable=3, broken=1, unsure=2, no_data=1)
    worse = LinkAvailability(
        link_id="worse", url="https://worse.example/page", reachable=0, broken=1, unsure=1, no_data=0
    )
    assert found == Ranked(rows=(worse, a), total=2)
    assert [row.link_id for row in weeks.reports().availability(MONDAY, weeks=6, most=MOST).rows] == ["worse"]


def test_checks_by_hand_are_in_none_of_these_lists(weeks: Weeks) -> None:
    weeks.look("a", 200)
    link = a_link("hand", "https://hand.example/deep")
    for n, at in enumerate((LAST_WEEK, MONDAY)):
        seen = an_observation(link, 200, sequence=n, observed_at=at + timedelta(hours=1))
        hop = (RedirectHop(url=link.url, status=301),)
        weeks.looks.append(replace(seen, final_url="https://hand.example/", redirects=hop, tls_not_after=MONDAY))
    reports = weeks.reports()
    assert [row.name for row in reports.groups(MONDAY, by=Grouping.HOST, most=MOST).rows] == ["a.example"]
    assert reports.moved_for_good(MONDAY, most=MOST).total == 0
    assert reports.suspected_pages(MONDAY, most=MOST).total == 0
    assert reports.ending_certificates(MONDAY, within=timedelta(days=21), most=MOST).total == 0
    assert [row.host for row in reports.slowest_hosts(MONDAY, most=MOST).rows] == ["a.example"]
