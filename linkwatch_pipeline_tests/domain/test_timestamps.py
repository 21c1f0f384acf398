"""How moments are written and read, and which week they belong to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.timestamps import (
    WEEK,
    format_seconds,
    format_utc,
    parse_utc,
    parse_week,
    require_utc,
    week_key,
    week_start,
)
from linkwatch_pipeline_tests.builders import MONDAY

MOMENT = st.datetimes(timezones=st.just(UTC))


@given(MOMENT)
def test_what_is_written_is_read_back(moment: datetime) -> None:
    assert parse_utc(format_utc(moment)) == moment


@given(MOMENT, MOMENT)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    assert (format_utc(one) < format_utc(other)) is (one < other)


@pytest.mark.parametrize(
    ("moment", "seconds", "exactly"),
    [
        (MONDAY, "2026-09-28T09:00:00Z", "2026-09-28T09:00:00.000000Z"),
        (MONDAY + timedelta(microseconds=999_999), "2026-09-28T09:00:00Z", "2026-09-28T09:00:00.999999Z"),
    ],
)
def test_seconds_are_cut_and_never_rounded(moment: datetime, seconds: str, exactly: str) -> None:
    assert (format_seconds(moment), format_utc(moment)) == (seconds, exactly)


@pytest.mark.parametrize(
    "text", ["2026-09-28T09:00:00Z", "2026-09-28T11:00:00+02:00", "2026-09-28 09:00:00+00:00", "2026-09-28T09:00:00.0Z"]
)
def test_any_offset_is_read_as_utc(text: str) -> None:
    assert parse_utc(text) == MONDAY
    assert parse_utc(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-09-28T09:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:00"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_utc(text)


@pytest.mark.parametrize(
    "moment",
    [MONDAY.replace(tzinfo=None), MONDAY.astimezone(timezone(timedelta(hours=2)))],
    ids=["naive", "another zone"],
)
def test_only_utc_is_accepted(moment: datetime) -> None:
    with pytest.raises(ValueError, match="aware UTC"):
        require_utc("moment", moment)
    with pytest.raises(ValueError, match="aware UTC"):
        format_utc(moment)
    with pytest.raises(ValueError, match="aware UTC"):
        week_start(moment)


@pytest.mark.parametrize(
    ("offset", "key"),
    [
        (timedelta(0), "2026-09-28"),
        (timedelta(microseconds=-1), "2026-09-21"),
        (timedelta(days=6, hours=23, minutes=59), "2026-09-28"),
        (WEEK, "2026-10-05"),
        (-4 * WEEK, "2026-08-31"),
    ],
)
def test_a_week_begins_on_monday_at_nine(offset: timedelta, key: str) -> None:
    assert week_key(MONDAY + offset) == key


@given(st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 (bounds)
def test_every_moment_belongs_to_exactly_one_week(moment: datetime) -> None:
    begin = week_start(moment)
    assert begin <= moment < begin + WEEK
    assert (begin.weekday(), begin.hour, begin.minute) == (0, 9, 0)
    assert parse_week(week_key(moment)) == begin


@pytest.mark.parametrize("key", ["0001-01-01", "1899-12-25", "3000-01-06", "9999-12-27"])
def test_a_week_has_room_for_arithmetic_before_and_after_it(key: str) -> None:
    with pytest.raises(InvalidInput, match="not in a year from 1900 to 2999"):
        parse_week(key)


@pytest.mark.parametrize("key", ["", "soon", "2026-09-29", "2026-09-28T09:00", "2026-9-28", "20260928", "2026-02-30"])
def test_what_is_no_week_is_refused_with_a_mend(key: str) -> None:
    with pytest.raises(InvalidInput, match="Give the Monday"):
        parse_week(key)
