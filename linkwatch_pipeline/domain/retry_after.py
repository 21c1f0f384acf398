"""How long a host asks us to stay away. Source: RFC 9110 section 10.2.3, and what servers really send."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

FLOOR = timedelta(seconds=1)
CEILING = timedelta(seconds=900)
# Not the comma within a date, which a day and a month follow: "Mon, 28 Sep", "Monday, 28-Sep".
_BETWEEN_VALUES = re.compile(r",(?!\s*\d{1,2}[ -][A-Za-z]{3})")
_SPELLED = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.IGNORECASE)


def parse_retry_after(value: str | None, *, now: datetime) -> timedelta | None:
    """The wait that a Retry-After header asks for, clamped to 1-900 s; None if absent or unreadable.

    Args:
        value: the raw header: seconds, an HTTP date, or the non-standard `1m30s`. Of several values joined by
            commas, the longest readable one counts; an HTTP date's own comma is understood.
        now: aware UTC, when the response arrived.
    """
    if value is None:
        return None
    waits = [wait for part in _BETWEEN_VALUES.split(value) if (wait := _read(part.strip(), now)) is not None]
    return min(max(max(waits), FLOOR), CEILING) if waits else None


def _read(text: str, now: datetime) -> timedelta | None:
    if text.isascii() and text.isdigit():  # digits first, and never fall through: "120" is not the year 120
        return timedelta(seconds=int(text.lstrip("0")[:9] or "0"))
    spelled = _SPELLED.fullmatch(text)
    if text and spelled is not None:
        hours, minutes, seconds = (min(int(group or 0), 10**6) for group in spelled.groups())
        return timedelta(hours=hours, minutes=minutes, seconds=seconds)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(date - now, timedelta(0))
