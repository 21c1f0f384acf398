"""Cycles begin on a grid: no delay adds up, and what takes too long skips beginnings instead of overlapping."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.cycles import CycleStart, Grid

GRID = Grid(anchor=1000.0, length=timedelta(seconds=60))


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (1000.1, CycleStart(number=1, due=1060.0)),
        (1059.9, CycleStart(number=1, due=1060.0)),
        (1060.0, CycleStart(number=1, due=1060.0)),
        (1060.4, CycleStart(number=1, due=1060.0)),
        (1061.0, CycleStart(number=2, due=1120.0, skipped=1)),
        (1075.0, CycleStart(number=2, due=1120.0, skipped=1)),
        (1200.0, CycleStart(number=4, due=1240.0, skipped=3)),
    ],
)
def test_the_next_cycle_is_the_next_one_on_the_grid_that_has_not_gone_by(ended: float, expected: CycleStart) -> None:
    assert GRID.after(GRID.first, ended) == expected


@given(st.lists(st.floats(0, 500), max_size=30))
def test_beginnings_stay_on_the_grid_and_none_begins_twice(lengths: list[float]) -> None:
    start, now = GRID.first, GRID.anchor
    for took in lengths:
        now = max(start.due, now) + took
        following = GRID.after(start, now)
        assert following.number == start.number + 1 + following.skipped
        assert following.due == GRID.anchor + 60 * following.number
        assert following.due > now - 0.5000001
        assert following.due - 60 <= now or following.skipped == 0
        start = following
