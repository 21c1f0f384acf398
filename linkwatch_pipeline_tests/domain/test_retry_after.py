"""RFC 9110's two forms, and what servers really send."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.retry_after import CEILING, FLOOR, parse_retry_after
from linkwatch_pipeline_tests.builders import MONDAY


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30),
        (" 30 ", 30),
        ("0", 1),
        ("1", 1),
        ("900", 900),
        ("901", 900),
        ("0000000000000000000120", 120),
        ("9" * 400, 900),
        ("Mon, 28 Sep 2026 09:02:00 GMT", 120),
        ("Mon, 28 Sep 2026 11:02:00 +0200", 120),
        ("Monday, 28-Sep-26 09:02:00 GMT", 120),
        ("Mon Sep 28 09:02:00 2026", 120),
        ("Mon, 28 Sep 2026 08:00:00 GMT", 1),  # past: at once, but never sooner than the floor
        ("Fri, 31 Dec 9999 23:59:59 GMT", 900),
        ("1m30s", 90),
        ("2M", 120),
        ("1h", 900),
        ("30, 60", 60),
        ("Mon, 28 Sep 2026 09:00:20 GMT, 40", 40),
        ("Mon, 28 Sep 2026 09:00:20 GMT, Monday, 28-Sep-26 09:05:00 GMT", 300),
        ("soon, 30", 30),
    ],
)
def test_a_readable_wait_is_clamped(value: str, seconds: int) -> None:
    assert parse_retry_after(value, now=MONDAY) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", [None, "", "  ", "soon", "-5", "1.5", "+30", "1e3", "٣٠", "30 seconds", ",", "nan"])
def test_an_unreadable_wait_is_none(value: str | None) -> None:
    assert parse_retry_after(value, now=MONDAY) is None


@given(
    st.text(max_size=60) | st.text("0123456789hmsMon, :GTSep+-", max_size=40),
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 (bounds)
)
def test_nothing_a_server_sends_breaks_it(value: str, now: datetime) -> None:
    wait = parse_retry_after(value, now=now)
    assert wait is None or FLOOR <= wait <= CEILING
