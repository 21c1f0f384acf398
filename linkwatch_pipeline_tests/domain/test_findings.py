"""The arithmetic of the report's rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.findings import LinkAvailability, wilson_interval


@pytest.mark.parametrize(
    ("found", "tried", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_the_one_of_the_literature(found: int, tried: int, low: float, high: float) -> None:
    """Source: R. G. Newcombe, Stat. Med. 17 (1998) 857, method 3, table I."""
    interval = wilson_interval(found, tried)
    assert interval is not None
    assert interval == pytest.approx((low, high), abs=0.00006)


def test_nothing_tried_is_no_data() -> None:
    assert wilson_interval(0, 0) is None
    nothing = LinkAvailability(link_id="a", url="https://a.example/", reachable=0, broken=0, unsure=3, no_data=1)
    assert (nothing.share, nothing.interval) == (None, None)


@given(st.integers(1, 500).flatmap(lambda tried: st.tuples(st.integers(0, tried), st.just(tried))))
def test_the_interval_holds_the_share_and_never_leaves_0_to_1(counts: tuple[int, int]) -> None:
    found, tried = counts
    interval = wilson_interval(found, tried)
    assert interval is not None
    assert 0.0 <= interval[0] <= found / tried <= interval[1] <= 1.0
