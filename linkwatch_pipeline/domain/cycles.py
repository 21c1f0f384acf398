"""When cycles of a fixed length begin: on a grid from the first one, so that no delay adds up; never two at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

ON_TIME = 0.5  # seconds; a machine that is busy wakes a little late


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleStart:
    """One beginning. `due` is monotonic seconds; `skipped` is how many beginnings before it went by."""

    number: int
    due: float
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Beginnings at `anchor`, `anchor + length`, ... (monotonic seconds)."""

    anchor: float
    length: timedelta

    @property
    def first(self) -> CycleStart:
        return CycleStart(number=0, due=self.anchor)

    def after(self, current: CycleStart, now: float) -> CycleStart:
        """The beginning that follows a cycle that ended now: the next one that has not gone by.

        One that went by less than ON_TIME ago is still kept: the cycle took exactly its length.
        """
        length = self.length.total_seconds()
        earliest = now - self.anchor - ON_TIME
        number = max(current.number + 1, -int(-earliest // length))
        return CycleStart(number=number, due=self.anchor + number * length, skipped=number - current.number - 1)
