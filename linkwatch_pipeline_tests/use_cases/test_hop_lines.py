"""The line for a redirect's host: who is first, who has a place, and how long it takes."""

from __future__ import annotations

from datetime import timedelta

from linkwatch_pipeline.use_cases.hop_lines import HopLine, HopLines
from linkwatch_pipeline_tests.builders import MONDAY, after

PACE = timedelta(seconds=3)


def a_line(*job_ids: str) -> HopLine:
    line = HopLine()
    line.visit_ended(PACE, opens_at=MONDAY)
    for job_id in job_ids:
        line.join(job_id)
    return line


def test_the_first_who_is_here_may_ask_and_the_next_when_that_one_is_gone() -> None:
    line = a_line("a", "b")
    assert (line.is_first("a"), line.is_first("b")) == (True, False)
    changed = line.changed
    line.forget("a")
    assert changed.is_set()
    assert line.is_first("b")


def test_whoever_is_away_keeps_the_place_but_holds_nobody_up() -> None:
    line = a_line("a", "b")
    line.send_away("a", until=after(seconds=30))
    assert line.is_first("b")
    assert line.expected_wait("b", MONDAY) == PACE
    line.join("a")
    assert line.is_first("a")
    assert not line.is_first("b")


def test_a_turn_is_expected_by_the_pace_so_far_and_the_hosts_own_pause() -> None:
    line = a_line("a", "b", "c")
    assert [line.expected_wait(job, MONDAY) for job in "abc"] == [0 * PACE, PACE, 2 * PACE]
    line.visit_ended(timedelta(seconds=5), opens_at=after(seconds=120))
    assert line.expected_wait("b", MONDAY) == timedelta(seconds=124)
    assert line.expected_wait("b", after(seconds=200)) == timedelta(seconds=4)


def test_nothing_is_expected_before_the_first_visit_was_seen() -> None:
    line = HopLine()
    for job_id in "abc":
        line.join(job_id)
    assert line.expected_wait("c", MONDAY) == timedelta(0)


def test_whoever_never_comes_back_loses_the_place() -> None:
    line = a_line("a", "b")
    line.send_away("a", until=after(seconds=30))
    assert line.expected_wait("b", after(seconds=90)) == PACE
    assert line.expected_wait("b", after(seconds=91)) == timedelta(0)


def test_a_job_that_is_over_has_no_place_in_any_line() -> None:
    lines = HopLines()
    for host in ("x.example", "y.example"):
        lines.of(host).join("a")
        lines.of(host).join("b")
    lines.forget("a")
    assert lines.of("x.example").is_first("b")
    assert lines.of("y.example").is_first("b")


def test_only_hosts_that_redirects_led_to_have_a_line() -> None:
    lines = HopLines()
    lines.visit_ended("docs.example", PACE, opens_at=MONDAY)
    line = lines.of("docs.example")
    line.join("a")
    line.join("b")
    assert line.expected_wait("b", MONDAY) == timedelta(0)
