"""The protocol of chains, leases and the tick, under crashes, duplicates, losses and skewed clocks."""

from __future__ import annotations

import pytest

from linkwatch_pipeline_tests.simulation.cluster import simulate


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_no_seed_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + 10):
        simulate(seed)


def test_the_seeds_do_crash_and_repeat_things() -> None:
    """A simulation in which nothing goes wrong would prove nothing."""
    assert sum(simulate(seed).crashes for seed in range(20)) > 20


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 6_000, 250))
def test_no_seed_of_thousands_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + 250):
        simulate(seed)
