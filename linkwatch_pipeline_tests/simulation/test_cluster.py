"""The protocol of chains, leases and the tick, under crashes, duplicates, losses and skewed clocks."""

from __future__ import annotations

import pytest

from linkwatch_pipeline_tests.simulation import cluster
from linkwatch_pipeline_tests.simulation.cluster import Cluster, simulate


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_no_seed_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + 10):
        simulate(seed)


def test_the_seeds_do_crash_and_repeat_things() -> None:
    """A simulation in which nothing goes wrong would prove nothing."""
    played = [simulate(seed) for seed in range(200, 220)]
    assert sum(one.crashes for one in played) > 20
    assert sum(one.dispatchers_died for one in played) > 2
    for fault in ("duplicate", "lose", "purges", "skew", "keep_letters"):
        assert sum(bool(getattr(one.faults, fault)) for one in played) > 2, fault
    assert sum(one.reordered for one in played) > 10
    assert sum(bool(one.allowances) for one in played) > 2


def test_a_seed_that_breaks_a_promise_names_the_command_that_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(of: Cluster) -> None:
        raise AssertionError("a promise is broken")

    monkeypatch.setattr(cluster, "check_invariants", broken)
    with pytest.raises(AssertionError, match=r"seed 7: a promise is broken \(replay: python -m .*\.simulation 7\)"):
        simulate(7)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 6_000, 250))
def test_no_seed_of_thousands_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + 250):
        simulate(seed)
