"""How a moment is written and read: aware UTC in code, RFC 3339 with `Z` outside, weeks that begin on Monday 09:00.

One fixed width (microseconds) everywhere, so that text order is time order in every store.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from linkwatch_pipeline.domain.errors import InvalidInput

WEEK = timedelta(days=7)
# A Monday 09:00 UTC: every weekly run is intended a whole number of weeks away from it.
_ANCHOR = datetime(2026, 9, 7, 9, 0, tzinfo=UTC)


def require_utc(name: str, value: datetime) -> None:
    """Refuse a naive or non-UTC moment: a programming error, so a ValueError."""
    if value.tzinfo is None or value.utcoffset() != timedelta(0):
        raise ValueError(f"{name} must be an aware UTC datetime, not {value!r}")


def format_utc(value: datetime) -> str:
    """`2026-09-28T09:00:00.000000Z`: fixed width, so that it sorts as text."""
    require_utc("value", value)
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def format_seconds(value: datetime) -> str:
    """`2026-09-28T09:00:00Z`: for people and for run ids; fractions are cut."""
    require_utc("value", value)
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def parse_utc(text: str) -> datetime:
    """Read RFC 3339 with `Z` or an offset. Raises ValueError on anything else."""
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years that can be told in UTC") from None


def week_start(moment: datetime) -> datetime:
    """The latest Monday 09:00 UTC at or before `moment`: the week it belongs to."""
    require_utc("moment", moment)
    return _ANCHOR + ((moment - _ANCHOR) // WEEK) * WEEK


def week_key(moment: datetime) -> str:
    """The partition key of the week of `moment`: the Monday's date, `2026-09-28`."""
    return week_start(moment).date().isoformat()


def check_begun(week: datetime, *, now: datetime, field: str = "week") -> datetime:
    """The week itself. Raises InvalidInput if it has not begun."""
    if now < week:
        raise InvalidInput(field, f"{week_key(week)} has not begun", f"Wait until {format_seconds(week)}.")
    return week


def parse_week(key: str) -> datetime:
    """The intended time of a week from its key. Raises InvalidInput unless it is a Monday's date, from 1900 to 2999."""
    mend = "Give the Monday that begins the week, such as 2026-09-28."
    try:
        day = datetime.fromisoformat(key)
    except ValueError:
        raise InvalidInput("week", f"{key!r} is not a date", mend) from None
    if len(key) != 10 or day.weekday() != 0:
        raise InvalidInput("week", f"{key!r} is not a Monday's date", mend)
    if not 1900 <= day.year < 3000:  # room for arithmetic before and after it
        raise InvalidInput("week", f"{key!r} is not in a year from 1900 to 2999", mend)
    return day.replace(hour=9, tzinfo=UTC)
