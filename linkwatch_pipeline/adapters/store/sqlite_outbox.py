"""Notices and mutes in SQLite (`ports.OutboxStore`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from linkwatch_pipeline.adapters.store.rows import MUTES, NOTICE_DELIVERY, NOTICES
from linkwatch_pipeline.adapters.store.sqlite_database import Database
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice, claimed, is_claimable
from linkwatch_pipeline.ports import Damaged

# Word for word the condition of the index notices_unsettled, or SQLite would not use it.
_UNSETTLED = "status NOT IN ('sent', 'delivered', 'bounced', 'complained', 'muted', 'discarded')"


class SqliteOutbox:
    """Notices, their claims, and mutes."""

    _database: Database

    def notices(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        unsettled_only: bool = False,
        damaged: Damaged | None = None,
    ) -> Iterator[Notice]:
        # notices_by_link, notices_by_run, notices_unsettled or notices_by_age: all in this order.
        filters = {"link_id = ?": link_id, "run_id = ?": run_id}
        used = {condition: value for condition, value in filters.items() if value is not None}
        conditions = [*used, _UNSETTLED] if unsettled_only else [*used]
        order = ("created_at", "transition_id")
        return self._database.stream(NOTICES, *conditions, values=tuple(used.values()), order=order, damaged=damaged)

    def get_notice(self, transition_id: str) -> Notice | None:
        return self._database.get(NOTICES, transition_id)

    def claim_notice(self, transition_id: str, *, by: str, now: datetime) -> Notice | None:
        with self._database.transaction() as write:
            notice = write.get(NOTICES, transition_id)
            if notice is None or not is_claimable(notice, now):
                return None
            mine = claimed(notice, by=by, now=now)
            write.update(NOTICES, mine, *NOTICE_DELIVERY)
            return mine

    def save_notice(self, notice: Notice, *, claimed_by: str) -> bool:
        with self._database.transaction() as write:
            stored = write.get(NOTICES, notice.transition_id)
            if stored is None or stored.claimed_by != claimed_by:
                return False
            write.update(NOTICES, notice, *NOTICE_DELIVERY)
            return True

    def update_notice(self, notice: Notice, *, replaces: Notice) -> bool:
        with self._database.transaction() as write:
            if write.get(NOTICES, notice.transition_id) != replaces:
                return False
            write.update(NOTICES, notice, *NOTICE_DELIVERY)
            return True

    def mutes(self, *, damaged: Damaged | None = None) -> Iterator[Mute]:
        return self._database.stream(MUTES, order=("target",), damaged=damaged)

    def save_mute(self, mute: Mute, *, replaces: Mute | None) -> bool:
        with self._database.transaction() as write:
            if write.get(MUTES, mute.target) != replaces:
                return False
            if replaces is None:
                write.insert(MUTES, mute)
            else:
                write.update(MUTES, mute)
            return True
