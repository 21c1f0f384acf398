"""Where notices stand: under the UTC day of their creation, in lists of the days that have any.

One list is of all days. The other is of days that may hold unsettled notices, so that a sender that looks every minute
reads those days alone, however far back they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    DAY,
    DAY_LIST,
    NOTICE_DAY,
    OPEN_DAY,
    Item,
    Key,
    encode,
    entry,
    key_of,
    notice_key,
    text,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable
from linkwatch_pipeline.adapters.store.rows import NOTICES
from linkwatch_pipeline.domain.errors import StoreError
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.ports import Clock

# A notice is created on the day of its commit, as its writer's clock shows it: never so long ago.
_MAY_STILL_GROW = timedelta(days=2)


class NoticeDays:
    """The lists of days."""

    def __init__(self, table: DynamoTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def expect(self, notice: Notice) -> None:
        """Make the day of a notice one that is looked at. Called before the notice is there."""
        day = day_of(notice.created_at)
        known = self._table.get_many([(DAY_LIST, f"{DAY}{day}"), (DAY_LIST, f"{OPEN_DAY}{day}")])
        # An older day may be found settled, and closed, at this very moment: it is opened anew in any case.
        if len(known) < 2 or self._is_over(day):
            self.open(day)

    def open(self, day: str) -> None:
        """Let a day be looked at for unsettled notices, from now on at least until somebody has looked."""
        self._table.put_many(entry((DAY_LIST, f"{prefix}{day}")) for prefix in (DAY, OPEN_DAY))

    def all(self) -> Iterator[str]:
        """Every day that has notices, in order."""
        return (item["sk"]["S"].removeprefix(DAY) for item in self._table.query(DAY_LIST, prefix=DAY))

    def unsettled(self) -> Iterator[Item]:
        """The entries of days that may hold unsettled notices, in order."""
        return self._table.query(DAY_LIST, prefix=OPEN_DAY)

    def close(self, entry: Item) -> None:
        """A day as `unsettled` named it was found settled: leave it out, unless it may grow or was opened anew."""
        if self._is_over(entry["sk"]["S"].removeprefix(OPEN_DAY)):
            with suppress(Conflict, StoreError):  # tidying: a reader that may not write reads the day again next time
                self._table.delete(key_of(entry), was=entry)

    def items(self, day: str) -> Iterator[Item]:
        """A day's notices, by transition id."""
        return self._table.query(notice_key(day, "")[0])

    def _is_over(self, day: str) -> bool:
        return day < day_of(self._clock.now() - _MAY_STILL_GROW)


def day_of(moment: datetime) -> str:
    """The UTC day under which a notice stands: `2026-09-28`."""
    return format_seconds(moment)[:10]


def notice_item(notice: Notice) -> Item:
    return encode(NOTICES, notice, notice_key(day_of(notice.created_at), notice.transition_id))


def noticed_on(notice: Notice) -> dict[str, Any]:
    """What a transition says about where its notice stands."""
    return {NOTICE_DAY: text(day_of(notice.created_at))}


def notice_key_of(transition: Item) -> Key | None:
    """Where the notice of a transition stands; None if it has none."""
    return notice_key(text_of(transition, NOTICE_DAY), text_of(transition, "id")) if NOTICE_DAY in transition else None
