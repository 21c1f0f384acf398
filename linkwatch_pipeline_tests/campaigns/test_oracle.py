"""The oracle against tables that a person wrote from SPEC 4 and 8: what judges the product has to be right itself."""

from __future__ import annotations

import pytest

from linkwatch_pipeline_tests.campaigns.fates import Script, read_fate
from linkwatch_pipeline_tests.campaigns.oracle import Expected, Oracle, Week

PAGE = "https://docs.example.com/guide"


def played(fates: dict[str, str]) -> tuple[Oracle, list[Week]]:
    """Four weeks of pages by their paths, which are the link ids too."""
    urls = {path: f"https://docs.example.com/{path}" for path in fates}
    script = Script(fates={urls[path]: read_fate(fate, 0.0) for path, fate in fates.items()}, down="", expired="")
    oracle = Oracle(script, {url: path for path, url in urls.items()})
    return oracle, [oracle.play(number) for number in range(4)]


@pytest.mark.parametrize(
    ("fate", "told", "last"),
    [
        ("ok gone gone ok", ["", "a:2 broken 404", "", "a:3 reachable 200"], Expected("reachable", 3, 3)),
        ("gone gone gone gone", ["a:1 broken 404", "", "", ""], Expected("broken", 1, 3)),
        ("ok ok ok ok", ["", "", "", ""], Expected("reachable", 1, 3)),
        ("ok gone error gone", ["", "a:2 broken 404", "", ""], Expected("broken", 2, 3)),
        ("gone changed ok changed", ["a:1 broken 404", "", "a:2 reachable 200", ""], Expected("reachable", 2, 3)),
        ("down error closed silent", ["", "", "", ""], Expected("unknown", 0, 3)),
        ("ok ok busy>ok ok", ["", "", "", ""], Expected("reachable", 1, 4)),
        ("ok 410 busy>ok ok", ["", "a:2 broken 410", "a:3 reachable 200", ""], Expected("reachable", 3, 4)),
        ("ok ok busy>gone gone", ["", "", "a:2 broken 404", ""], Expected("broken", 2, 4)),
        ("sign-in archived moved ok", ["", "a:2 broken 404", "a:3 reachable 200", ""], Expected("reachable", 3, 3)),
    ],
)
def test_owners_are_told_of_what_counts_and_once(fate: str, told: list[str], last: Expected) -> None:
    oracle, weeks = played({"a": fate})
    assert [" ".join(f"{t.transition_id} {t.to_state} {t.status}" for t in week.told) for week in weeks] == told
    assert oracle.links == {"a": last}


def test_a_host_that_throttles_three_times_in_a_row_is_left_alone_until_the_retry_run() -> None:
    _, weeks = played(dict.fromkeys("abcde", "ok busy>ok ok ok"))
    week = weeks[1]
    assert {run_id.partition("~")[2]: dict(ends) for run_id, ends in week.ends.items()} == {
        "": {"throttled": 3, "expired": 2},
        "retry-1": {"reachable": 3, "throttled": 2},
        "retry-2": {"reachable": 2},
    }
    assert [(seen.link_id, seen.sequence) for seen in week.seen if "~retry-1" in seen.run_id] == [
        ("a", 2),
        ("b", 2),
        ("c", 2),
        ("d", 2),
        ("e", 2),
    ]
    assert sum(week.asked.values()) == 10
