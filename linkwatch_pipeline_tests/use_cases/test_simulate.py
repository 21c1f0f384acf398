"""Runs in virtual time without store and network: our order, plain FIFO, and a queue with whole-second delays."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from linkwatch_pipeline.domain.planning import Pace, shape
from linkwatch_pipeline.use_cases.simulate import (
    Workload,
    fixed_service,
    forecast,
    in_given_order,
    in_our_order,
    on_message_queue,
    varied_service,
    with_planned_starts,
)

PACE = Pace(concurrency=20, mean_service=timedelta(seconds=2), cooldown=timedelta(seconds=1))
SHAPES = {
    "uniform": [6] * 1000,
    "31 x 100 and singles": [100] * 31 + [1] * 2900,
    "one x 100 and singles": [1] * 5900 + [100],
    "60 x 100": [100] * 60,
}


def workload(links_per_host: list[int], *, varied: bool = False) -> Workload:
    service = varied_service(PACE, random.Random(4).gauss) if varied else fixed_service(PACE)
    return Workload({f"h{n}": links for n, links in enumerate(links_per_host)}, service, PACE)


@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_our_order_and_planned_starts_keep_near_the_bound(name: str, varied: bool) -> None:
    work = workload(SHAPES[name], varied=varied)
    assert in_our_order(work) / work.bound <= 1.02
    assert with_planned_starts(work) / work.bound <= 1.08


def test_without_planned_starts_a_queue_serves_a_long_chain_last() -> None:
    work = workload(SHAPES["one x 100 and singles"])
    assert on_message_queue(work, {}) / work.bound > 1.4


def test_plain_fifo_holds_its_slots_while_a_host_rests() -> None:
    work = workload(SHAPES["31 x 100 and singles"])
    assert in_given_order(work, range(len(work.takes))) / work.bound > 10


@hypothesis_settings(max_examples=40)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.booleans())
def test_no_order_beats_the_bound_or_loses_a_link(links_per_host: list[int], varied: bool) -> None:
    work = workload(links_per_host, varied=varied)
    least, all_alone = work.bound * 0.999999, sum(work.takes) + len(work.takes)
    made = [
        in_our_order(work),
        with_planned_starts(work),
        on_message_queue(work, {}),
        in_given_order(work, range(len(work.takes))),
    ]
    assert all(least <= took for took in made)
    assert all(took.total_seconds() <= all_alone + work.bound.total_seconds() for took in made)


def test_a_host_with_a_large_share_of_a_large_run_never_waits() -> None:
    """The shape of 600,000 links with 50,000 on one host, at a twentieth of its size."""
    found = forecast(dict(shape(links=30_000, hosts=5_000, busiest=2_500)), PACE, normal=None)
    assert found.makespans["most work left first"] / found.least.makespan <= 1.001
    assert not found.in_time
    assert found.fits_window


def test_a_forecast_says_what_would_make_it_fit() -> None:
    found = forecast({"big": 20_000, "small": 5}, PACE, normal=None)
    assert not found.fits_window
    assert found.days is not None
    assert found.days.days == 3
    assert dict(found.needed_allowance) == {"big": 3}
    agreed = {"big": 6_700, "big#2": 6_650, "big#3": 6_650, "small": 5}
    assert forecast(agreed, PACE, normal=None).fits_window
    assert dict(forecast(agreed, PACE, normal=None).needed_allowance) == {}
    uneven = {"big": 7_500, "big#2": 6_250, "big#3": 6_250}
    assert dict(forecast(uneven, PACE, normal=None).needed_allowance) == {"big": 4}
