"""The line for a redirect's host: who is first, who has a place, and how long it takes."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from linkwatch_pipeline.use_cases.hop_lines import HopLine, HopLines
from linkwatch_pipeline.use_cases.sleeping import sleep_until_changed
from linkwatch_pipeline_tests.builders import MONDAY, after
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual

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


def test_the_pace_is_the_mean_of_all_visits_seen() -> None:
    line = HopLine()
    for seconds in (1, 2, 6):
        line.visit_ended(timedelta(seconds=seconds), opens_at=MONDAY)
    line.join("a")
    line.join("b")
    assert line.expected_wait("b", MONDAY) == timedelta(seconds=3)


def test_whoever_is_not_in_line_would_come_last() -> None:
    line = a_line("a", "b")
    assert line.expected_wait("stranger", MONDAY) == 2 * PACE
    assert not line.is_first("stranger")
    assert HopLine().is_first("stranger")


def test_joining_again_keeps_the_place() -> None:
    line = a_line("a", "b")
    line.join("a")
    assert line.is_first("a")


def test_forgetting_a_stranger_wakes_nobody() -> None:
    line = a_line("a")
    changed = line.changed
    line.forget("stranger")
    assert not changed.is_set()


@pytest.mark.parametrize("happens", ["ended", "away"])
def test_those_who_wait_are_woken_when_somebody_else_may_be_first(happens: str) -> None:
    line, clock = a_line("a", "b"), VirtualClock(MONDAY)

    async def scene() -> timedelta:
        waiting = asyncio.create_task(sleep_until_changed(clock, timedelta(seconds=8), line.changed))
        await clock.sleep(timedelta(seconds=2))
        line.forget("a") if happens == "ended" else line.send_away("a", after(seconds=60))
        await waiting
        return clock.now() - MONDAY

    assert run_virtual(scene(), clock) == timedelta(seconds=2)
    assert line.is_first("b")
