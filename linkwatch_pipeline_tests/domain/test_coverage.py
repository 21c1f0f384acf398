"""Coverage never flatters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.coverage import completeness, coverage, is_poor, percent
from linkwatch_pipeline.domain.runs import COUNTED, RunCounts


@pytest.mark.parametrize(
    ("expected", "by_end", "complete", "seen"),
    [
        (10, {"reachable": 10}, 1.0, 1.0),
        (10, {"reachable": 6, "broken": 2, "content_changed": 2}, 1.0, 1.0),
        (10, {"uncertain": 10}, 1.0, 0.0),  # 6,000 timeouts are complete and saw nothing
        (10, {"reachable": 5, "throttled": 2, "uncertain": 1, "expired": 1, "abandoned": 1}, 1.0, 0.5),
        (10, {"reachable": 4, "cancelled": 2}, 0.6, 0.5),
        (10, {}, 0.0, 0.0),
        (2, {"cancelled": 2}, 1.0, None),
        (0, {}, None, None),
    ],
)
def test_what_was_seen_over_what_was_to_be_seen(
    expected: int, by_end: dict[str, int], complete: float | None, seen: float | None
) -> None:
    counts = RunCounts(expected=expected, by_end=by_end)
    assert completeness(counts) == complete
    assert coverage(counts) == seen


@given(st.dictionaries(st.sampled_from(COUNTED), st.integers(0, 1000)), st.integers(0, 1000))
def test_coverage_stays_between_nothing_and_all(by_end: dict[str, int], pending: int) -> None:
    counts = RunCounts(expected=sum(by_end.values()) + pending, by_end=by_end)
    for value in (coverage(counts), completeness(counts)):
        assert value is None or 0 <= value <= 1


@pytest.mark.parametrize(("value", "poor"), [(None, True), (0.0, True), (0.8999, True), (0.9, False), (1.0, False)])
def test_no_data_and_little_data_deserve_a_warning(value: float | None, poor: bool) -> None:
    assert is_poor(value) is poor


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no data"),
        (0.0, "0.0 %"),
        (1.0, "100.0 %"),
        (5999 / 6000, "99.9 %"),
        (0.9999999, "99.9 %"),
        (2 / 3, "66.6 %"),
    ],
)
def test_a_percentage_is_cut(value: float | None, text: str) -> None:
    assert percent(value) == text


@given(st.integers(0, 1000))
def test_a_percentage_that_needs_no_cut_is_exact(tenths: int) -> None:
    assert percent(tenths / 1000) == f"{tenths // 10}.{tenths % 10} %"
