"""The log's judge against logs written by hand."""

from __future__ import annotations

import pytest

from linkwatch_pipeline_tests.campaigns.fates import SIGN_IN, Script, read_fate
from linkwatch_pipeline_tests.campaigns.pace import WeekLog
from linkwatch_pipeline_tests.world import Hit, RequestLog

DOCS = "docs.example.com"
COOLDOWN = 0.5


def hit(started: float, ended: float, target: str, host: str = DOCS, week: int = 0) -> Hit:
    return Hit(host, "", "https", target, {}, week, "", started, ended, 1, 1)


def week_of(*hits: Hit) -> WeekLog:
    """Of a host with a throttled page, a page behind the sign-in host, and quiet ones."""
    fates = {"/busy": "busy>ok ok ok ok", "/in": "sign-in ok ok ok", "/a": "ok ok ok ok", "/b": "ok ok ok ok"}
    script = Script(
        fates={f"https://{DOCS}{page}": read_fate(fate, 0.1) for page, fate in fates.items()},
        down="",
        expired="",
        hops={(SIGN_IN, "/x"): f"https://{DOCS}/in"},
    )
    return WeekLog(script, RequestLog(hits), 0)


@pytest.mark.parametrize(
    ("hits", "rude"),
    [
        ([hit(0, 1, "/a"), hit(1.5, 2, "/b")], 0),
        ([hit(0, 1, "/a"), hit(1.4, 2, "/b")], 1),
        ([hit(0, 1, "/a"), hit(0.9, 2, "/b")], 1),
        ([hit(0, 1, "/a"), hit(1.1, 2, "/x", SIGN_IN)], 0),
        ([hit(0, 1, "/x", SIGN_IN), hit(1.1, 2, "/x", SIGN_IN)], 1),
        ([hit(0, 1, "/busy"), hit(1.9, 2, "/a")], 1),
        ([hit(0, 1, "/busy"), hit(2.0, 3, "/busy"), hit(3.5, 4, "/a")], 0),
        ([hit(0, 1, "/a"), hit(1.1, 2, "/b", week=1)], 0),
    ],
)
def test_overlaps_and_short_rests_are_seen_on_every_host(hits: list[Hit], rude: int) -> None:
    assert len(week_of(*hits).rude_visits(COOLDOWN)) == rude


def test_the_bound_is_the_longest_chain_with_hops_and_pauses() -> None:
    # 1 s, then a pause of 1 s, 1 s, then 2 s on the sign-in host (longer than the rest), then 1 s.
    log = week_of(hit(0, 1, "/busy"), hit(3, 4, "/in"), hit(5, 7, "/x", SIGN_IN), hit(9, 10, "/a"))
    pace = log.pace(COOLDOWN, 2, since=0, until=20)
    assert (pace.visits, pace.hops, pace.took, pace.shared) == (4, 1, 10, 2.5)
    assert (pace.host, pace.busiest, pace.bound) == (DOCS, 6.0 + 0.0, 6.0)


def test_the_bound_is_the_work_over_the_slots_when_that_is_more() -> None:
    log = week_of(hit(0, 1, "/a"), hit(0, 1, "/x", SIGN_IN), hit(1.5, 2.5, "/x", SIGN_IN))
    pace = log.pace(0.0, 1, since=0, until=20)
    assert (pace.shared, pace.bound, pace.ratio) == (3, 3, 2.5 / 3)


def test_only_what_began_between_the_two_moments_counts() -> None:
    log = week_of(hit(0, 1, "/a"), hit(5, 6, "/b"), hit(9, 10, "/a"))
    assert log.pace(COOLDOWN, 20, since=2, until=8).visits == 1
    assert log.asked() == {f"https://{DOCS}/a": 2, f"https://{DOCS}/b": 1}
