"""`linkwatch report`: a table for people and one document for machines."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.runs import count_chains, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation, dispatched
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

HOSTILE = "https://docs.example/a?<script>alert(1)</script>'\"=cmd()&x=\u202egnp.\u05d0"


def observe(terminal: Terminal, week: datetime, links: Sequence[tuple[str, str, int | None]]) -> None:
    """Play a week in the terminal's home: (link id, URL, HTTP status or None); `changed` misses its text."""
    terminal.fine("links")
    store = SqliteStore.open(terminal.home / "linkwatch.sqlite3")
    try:
        for link_id, url, _ in links:
            if store.get_link(link_id) is None:
                link = a_link(link_id, "https://docs.example/", active_since=MONDAY - 9 * WEEK, marker="Guide")
                # Not through the door for URLs: this is about what would happen if that let something in.
                link = replace(link, url=url, places=(Place(file="docs/a.md", line=3), Place(file="b.md", line=1)))
                store.save_link(link, replaces=None)
        watched = {link.id: link for link in store.links() if link.id in {link_id for link_id, _, _ in links}}
        ends = {link_id: status for link_id, _, status in links}
        for job in dispatched(store, list(watched.values()), run=a_run(week)):
            status = ends[job.link_id]
            at = week + timedelta(minutes=1)
            found = job.link_id != "changed" if status == 200 else None
            seen = an_observation(watched[job.link_id], status, job=job, marker_found=found, observed_at=at)
            store.record(seen, default_confirm=1, now=at)
        run_id = weekly_run_id(week)
        store.close_run(run_id, totals=count_chains(store.chains(run_id)), at=week)
    finally:
        store.close()


TWO_WEEKS = [
    ("fine", "https://docs.example/fine", 200),
    ("gone", "https://docs.example/gone", 404),
    ("changed", "https://docs.example/changed", 200),
    ("unsure", "https://docs.example/unsure", None),
]


@pytest.fixture
def watched(terminal: Terminal) -> Terminal:
    """Two weeks with all that a report shows."""
    observe(terminal, MONDAY - WEEK, TWO_WEEKS)
    observe(terminal, MONDAY, TWO_WEEKS)
    return terminal


def test_the_newest_week_is_reported_for_people(watched: Terminal) -> None:
    said = watched.fine("report")
    assert said.err == ""
    # How many they are depends on the machine's clock: the home is a real one.
    out, missed = re.subn(r"\nNobody ran the [0-9]+ weeks since: [^\n]+\.\n", "", said.out)
    assert missed == 1
    assert out == (
        "week 2026-09-28: closed, 4 of 4 jobs ended: reachable 1, broken 1, uncertain 1, content_changed 1\n"
        "coverage 75.0 % (poor: below 90.0 %), completeness 100.0 %\n"
        "\n"
        "OUTCOME          LINKS  SHARE\n"
        "reachable        1      25.0 %\n"
        "broken           1      25.0 %\n"
        "throttled        0      0.0 %\n"
        "uncertain        1      25.0 %\n"
        "content_changed  1      25.0 %\n"
        "each link once, by its last look of the week's runs; checks by hand are left out\n"
        "\n"
        "to mend: 2 (1 broken, 1 without the expected text, 0 moved for good)\n"
        "\n"
        "WEEK        RUN     COVERAGE  COMPLETE  LINKS  REACHABLE  BROKEN  THROTTLED  UNCERTAIN  CONTENT_CHANGED\n"
        "2026-09-28  closed  75.0 %    100.0 %   4      1          1       0          1          1\n"
        "2026-09-21  closed  75.0 %    100.0 %   4      1          1       0          1          1\n"
        "\n"
        "by owner\n"
        "OWNER      LINKS  REACHABLE  BROKEN  THROTTLED  UNCERTAIN  CONTENT_CHANGED\n"
        "docs-team  4      1          1       0          1          1\n"
        "\n"
        "still broken\n"
        "LINK  SINCE                 STATUS  OWNER      PLACE             URL\n"
        "gone  2026-09-21T09:01:00Z  404     docs-team  docs/a.md:3 (+1)  https://docs.example/gone\n"
        "\n"
        "hosts with the most links broken, uncertain or throttled\n"
        "HOST          LINKS  BROKEN  UNCERTAIN  THROTTLED  REASONS\n"
        "docs.example  4      1       1          0          gone 1, timeout 1\n"
        "\n"
        "uncertain week after week: nobody knows whether these pages are there\n"
        "LINK    WEEKS  SINCE                 REASON   OWNER      PLACE             URL\n"
        "unsure  2      2026-09-21T09:01:00Z  timeout  docs-team  docs/a.md:3 (+1)  https://docs.example/unsure\n"
        "\n"
        "answered without the expected text: have a look\n"
        "LINK     AT                    STATUS  OWNER      PLACE             URL\n"
        "changed  2026-09-28T09:01:00Z  200     docs-team  docs/a.md:3 (+1)  https://docs.example/changed\n"
        "\n"
        "slowest hosts\n"
        "HOST          ANSWERS  MEDIAN MS  95 % MS\n"
        "docs.example  3        120        120\n"
        "\n"
        "least available, of the weeks with a verdict\n"
        "LINK  FOUND  OF WEEKS  SHARE  95 % INTERVAL\n"
        "gone  0      2         0.0 %  0.0 % to 65.7 %\n"
    )


def test_the_document_has_every_field(watched: Terminal) -> None:
    week = {
        "week": "2026-09-28",
        "run_state": "closed",
        "expected": 4,
        "completed": 4,
        "completeness": 1.0,
        "coverage": 0.75,
        "jobs": {"reachable": 1, "broken": 1, "uncertain": 1, "content_changed": 1},
        "links_seen": 4,
        "links": {"reachable": 1, "broken": 1, "throttled": 0, "uncertain": 1, "content_changed": 1},
    }
    registered = {
        "owner": "docs-team",
        "expect": "Guide",
        "retired": False,
        "places": [{"file": "docs/a.md", "line": 3}, {"file": "b.md", "line": 1}],
    }
    counted = {"links": 4, "outcomes": {"reachable": 1, "broken": 1, "uncertain": 1, "content_changed": 1}}
    document = watched.fine("report", "--json").document
    assert document.pop("missed_since")[-1] == "2026-10-05"
    assert document == {
        "week": "2026-09-28",
        "this_week": week,
        "weeks": [week, {**week, "week": "2026-09-21"}],
        "by_owner": [{"name": "docs-team", **counted}],
        "by_host": [{"name": "docs.example", **counted}],
        "by_file": [{"name": "b.md", **counted}, {"name": "docs/a.md", **counted}],
        "newly_broken": [],
        "recovered": [],
        "still_broken": [
            {
                "link_id": "gone",
                "url": "https://docs.example/gone",
                "since": "2026-09-21T09:01:00.000000Z",
                "last_good": None,
                "status": 404,
                "seen": "broken",
                **registered,
            }
        ],
        "moved_for_good": [],
        "suspected_pages": [],
        "ending_certificates": [],
        "slowest_hosts": [{"host": "docs.example", "answers": 3, "median_ms": 120, "p95_ms": 120, "slowest_ms": 120}],
        "availability": [
            {
                "link_id": "gone",
                "url": "https://docs.example/gone",
                "reachable": 0,
                "broken": 2,
                "unsure": 0,
                "no_data": 0,
                "share": 0.0,
                "interval": [0.0, pytest.approx(0.65762, abs=1e-5)],
                **registered,
            }
        ],
        "worst_hosts": [
            {
                "host": "docs.example",
                "links": 4,
                "broken": 1,
                "uncertain": 1,
                "throttled": 0,
                "reasons": {"gone": 1, "timeout": 1},
            }
        ],
        "repeated_uncertainty": [
            {
                "link_id": "unsure",
                "url": "https://docs.example/unsure",
                "weeks": 2,
                "since": "2026-09-21T09:01:00.000000Z",
                "reason": "timeout",
                "reasons": ["timeout"],
                **registered,
            }
        ],
        "content_changed": [
            {
                "link_id": "changed",
                "url": "https://docs.example/changed",
                "observed_at": "2026-09-28T09:01:00.000000Z",
                "status": 200,
                "final_url": "https://docs.example/changed",
                **registered,
            }
        ],
        "score": {"to_mend": 2, "broken": 1, "text_missing": 1, "moved": 0, "unsure": 1, "advice": 0},
        "totals": {
            "by_owner": 1,
            "by_host": 1,
            "by_file": 2,
            "worst_hosts": 1,
            "newly_broken": 0,
            "recovered": 0,
            "still_broken": 1,
            "repeated_uncertainty": 1,
            "content_changed": 1,
            "moved_for_good": 0,
            "suspected_pages": 0,
            "ending_certificates": 0,
            "slowest_hosts": 1,
            "availability": 1,
        },
        "problems": [],
    }
    assert watched.fine("report", "--json", "--week", "2026-09-21").document["this_week"]["week"] == "2026-09-21"


def test_a_home_without_weeks_has_no_data(terminal: Terminal) -> None:
    said = terminal.fine("report", "--week", "2026-09-28")
    assert said.out.startswith("week 2026-09-28: no run is known\ncoverage no data, completeness no data\n")
    document = terminal.fine("report", "--week", "2026-09-28", "--json").document
    assert (document["this_week"]["coverage"], document["this_week"]["links"]) == (None, None)


def test_long_lists_are_cut_on_the_terminal_and_whole_in_the_document(terminal: Terminal) -> None:
    links = [(f"link-{n:03}", f"https://h{n:03}.example/", None) for n in range(23)]
    for weeks_ago in (14, 1, 0):
        observe(terminal, MONDAY - weeks_ago * WEEK, links)
    said = terminal.fine("report")
    assert said.out.count("and 3 more; see --json") == 2
    assert said.out.count("and 2 more; see --json") == 1
    document = terminal.fine("report", "--json").document
    assert (len(document["repeated_uncertainty"]), len(document["worst_hosts"]), len(document["weeks"])) == (23, 23, 15)


def test_what_others_wrote_is_text_and_nothing_else(terminal: Terminal) -> None:
    url = f"{HOSTILE}\x1b[2J\r\n{'x' * 10_000}"
    for week in (MONDAY - WEEK, MONDAY):
        observe(terminal, week, [("unsure", url, None), ("changed", url + "c", 200)])
    said = terminal.fine("report")
    shown = [line for line in said.out.splitlines() if "<script>" in line]
    assert len(shown) == 2
    assert not any(sign in said.out for sign in ("\x1b", "\r", "\u202e"))
    assert max(len(line) for line in said.out.splitlines() if line not in shown) < 150
    as_json = terminal.fine("report", "--json")
    assert as_json.out.isascii()
    assert as_json.document["repeated_uncertainty"][0]["url"] == url


def test_a_week_that_is_no_monday_is_refused_before_a_home_is_made(terminal: Terminal) -> None:
    assert "not a Monday" in terminal.refused("report", "--week", "2026-09-29")
    assert not terminal.home.exists()


def test_without_duckdb_the_missing_extra_is_named(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "linkwatch-pipeline[reports]" in terminal.refused("report")
    observe(terminal, MONDAY, TWO_WEEKS)
    assert "linkwatch-pipeline[reports]" in terminal.refused("report", "--json")
