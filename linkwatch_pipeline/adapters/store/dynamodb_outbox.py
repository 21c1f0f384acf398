"""Notices and mutes in DynamoDB (`ports.OutboxStore`). A transition names the day under which its notice stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from linkwatch_pipeline.adapters.store.dynamodb_days import NoticeDays, day_of, notice_key_of
from linkwatch_pipeline.adapters.store.dynamodb_items import (
    MUTE_LIST,
    OPEN_DAY,
    TRANSITION,
    Item,
    decode,
    encode,
    key_of,
    mute_key,
    run_key,
    transition_key_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_table import MOST_IN_GET, DynamoTable, chunks
from linkwatch_pipeline.adapters.store.readable import readable
from linkwatch_pipeline.adapters.store.rows import MUTES, NOTICE_DELIVERY, NOTICES, RUNS
from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice, claimed, is_claimable
from linkwatch_pipeline.ports import Damaged

_ONE_DAY = timedelta(days=1)  # more than any two clocks differ


class DynamoOutbox:
    """Notices, their claims, and mutes."""

    _table: DynamoTable
    _days: NoticeDays

    def notices(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        unsettled_only: bool = False,
        damaged: Damaged | None = None,
    ) -> Iterator[Notice]:
        if link_id is not None:
            found: Iterable[Notice] = self._notices_of_link(link_id, damaged)
        elif unsettled_only:
            found = self._unsettled_notices(damaged)
        else:
            found = (notice for day in self._days_of(run_id) for notice in self._notices_of_day(day, damaged))
        for notice in found:
            in_run = run_id is None or notice.run_id == run_id
            if in_run and not (unsettled_only and notice.status.is_settled):
                yield notice

    def get_notice(self, transition_id: str) -> Notice | None:
        item = self._notice_item(transition_id)
        return decode(NOTICES, item) if item is not None else None

    def claim_notice(self, transition_id: str, *, by: str, now: datetime) -> Notice | None:
        def attempt() -> Notice | None:
            item = self._notice_item(transition_id)
            notice = decode(NOTICES, item) if item is not None else None
            if item is None or notice is None or not is_claimable(notice, now):
                return None
            mine = claimed(notice, by=by, now=now)
            self._table.put(encode(NOTICES, mine, key_of(item)), was=item)
            return mine

        return self._table.patience.until_undisturbed(attempt)

    def save_notice(self, notice: Notice, *, claimed_by: str) -> bool:
        def attempt() -> bool:
            item = self._notice_item(notice.transition_id)
            stored = decode(NOTICES, item) if item is not None else None
            if item is None or stored is None or stored.claimed_by != claimed_by:
                return False
            self._write_delivery(notice, stored, item)
            return True

        return self._table.patience.until_undisturbed(attempt)

    def update_notice(self, notice: Notice, *, replaces: Notice) -> bool:
        def attempt() -> bool:
            item = self._notice_item(notice.transition_id)
            if item is None or decode(NOTICES, item) != replaces:
                return False
            self._write_delivery(notice, replaces, item)
            return True

        return self._table.patience.until_undisturbed(attempt)

    def mutes(self, *, damaged: Damaged | None = None) -> Iterator[Mute]:
        return readable(self._table.query(MUTE_LIST), lambda item: decode(MUTES, item), damaged)

    def save_mute(self, mute: Mute, *, replaces: Mute | None) -> bool:
        key = mute_key(mute.target)

        def attempt() -> bool:
            item = self._table.get(key)
            if (decode(MUTES, item) if item is not None else None) != replaces:
                return False
            self._table.put(encode(MUTES, mute, key), was=item)
            return True

        return self._table.patience.until_undisturbed(attempt)

    def _write_delivery(self, notice: Notice, stored: Notice, item: Item) -> None:
        """Raises Conflict if the notice is not as it was read."""
        written = replace(stored, **{name: getattr(notice, name) for name in NOTICE_DELIVERY})
        if stored.status.is_settled and not written.status.is_settled:
            self._days.open(day_of(stored.created_at))
        self._table.put(encode(NOTICES, written, key_of(item)), was=item)

    def _days_of(self, run_id: str | None) -> Iterator[str]:
        """The days that have notices; of a run only those between its start and its end."""
        item = self._table.get(run_key(run_id)) if run_id is not None else None
        if item is None:
            yield from self._days.all()
            return
        run = decode(RUNS, item)
        first = day_of(run.started_at - _ONE_DAY)
        last = day_of(run.closed_at + _ONE_DAY) if run.closed_at is not None else None
        for day in self._days.all():
            if first <= day and (last is None or day <= last):
                yield day

    def _notices_of_day(self, day: str, damaged: Damaged | None) -> list[Notice]:
        return _in_order(readable(self._days.items(day), _notice_of, damaged))

    def _unsettled_notices(self, damaged: Damaged | None) -> Iterator[Notice]:
        for entry in self._days.unsettled():
            day = entry["sk"]["S"].removeprefix(OPEN_DAY)
            unread: list[DamagedRecord] = []
            notices = self._notices_of_day(day, unread.append if damaged is not None else None)
            if damaged is not None:
                for error in unread:
                    damaged(error)
            unsettled = [notice for notice in notices if not notice.status.is_settled]
            yield from unsettled
            if not unsettled and not unread:  # a damaged one may be unsettled, and is to be found when it is mended
                self._days.close(entry)

    def _notices_of_link(self, link_id: str, damaged: Damaged | None) -> list[Notice]:
        found: list[Notice] = []
        for chunk in chunks(self._table.query(f"LINK#{link_id}", prefix=TRANSITION), MOST_IN_GET):
            keys = [key for key in readable(chunk, notice_key_of, damaged) if key is not None]
            found.extend(readable(self._table.get_many(keys).values(), _notice_of, damaged))
        return _in_order(found)

    def _notice_item(self, transition_id: str) -> Item | None:
        transition = self._table.get(transition_key_of(transition_id))
        key = notice_key_of(transition) if transition is not None else None
        return self._table.get(key) if key is not None else None


def _notice_of(item: Item) -> Notice:
    return decode(NOTICES, item)


def _in_order(notices: Iterable[Notice]) -> list[Notice]:
    return sorted(notices, key=lambda notice: (notice.created_at, notice.transition_id))
