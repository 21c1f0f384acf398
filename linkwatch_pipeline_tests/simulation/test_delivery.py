"""Telling owners, week after week, with senders that fail in every way and die between any two steps."""

from __future__ import annotations

from collections import Counter

import pytest

from linkwatch_pipeline_tests.simulation.delivery import simulate_delivery

WEEKS = 20


@pytest.mark.parametrize("first", range(0, 10, 5))
def test_no_transition_is_lost_and_every_repetition_is_admitted(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 5):
        account = simulate_delivery(seed, WEEKS)
        seen.update(account.ends)
        seen.update(crashes=account.crashes, digests=account.digests, suspect=account.suspect_runs)
    # A simulation in which nothing goes wrong would prove nothing.
    assert min(seen[what] for what in ("sent", "muted", "discarded", "digests", "suspect", "crashes")) > 0, seen


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_500, 50))
def test_ten_thousand_weeks_lose_nothing(first: int) -> None:
    for seed in range(first, first + 50):
        simulate_delivery(seed, WEEKS)
