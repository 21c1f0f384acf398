"""One thing that is not well with linkwatch itself (SPEC 11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MOST_NAMED = 5  # examples in one finding


class Severity(StrEnum):
    """`critical` makes the verdict unhealthy; `warning` is to be looked at in working hours."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not well: a stable code, what it concerns, a sentence, and since when (UTC)."""

    code: str
    severity: Severity
    subject: str
    detail: str
    since: datetime


def named(names: list[str] | tuple[str, ...], *, of: int | None = None) -> str:
    """The first few of them, and how many more there are. Args: of: how many there are if not all are given."""
    more = (of if of is not None else len(names)) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
