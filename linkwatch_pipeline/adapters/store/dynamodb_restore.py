"""The records of another store into an empty table (`ports.Store.restore`).

No transaction is as large as a history. An item names the source whose records are being put; until all are there, only
a repetition with the same source goes on, and it puts the same items again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from linkwatch_pipeline.adapters.store.dynamodb_days import NoticeDays, day_of, notice_item
from linkwatch_pipeline.adapters.store.dynamodb_guard import Guard
from linkwatch_pipeline.adapters.store.dynamodb_history import observation_item
from linkwatch_pipeline.adapters.store.dynamodb_items import (
    NOTICE_DAY,
    WEEK_LIST,
    Item,
    chain_key,
    encode,
    entry,
    host_entry_key,
    host_key,
    job_key,
    key_of,
    link_entries,
    mute_key,
    owner_key,
    run_key,
    transition_key,
    transition_key_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_parts import LinkParts
from linkwatch_pipeline.adapters.store.dynamodb_runs import run_entry
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable, chunks
from linkwatch_pipeline.adapters.store.rows import (
    CHAINS,
    EXPORTED_WEEKS,
    HOSTS,
    JOBS,
    MUTES,
    OWNERS,
    RUNS,
    TRANSITIONS,
)
from linkwatch_pipeline.domain.hosts import HostRecord
from linkwatch_pipeline.domain.links import Link, Owner
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, Run
from linkwatch_pipeline.domain.timestamps import format_utc
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import Clock, StoredRecord

_TOGETHER = 1000


class DynamoRestore:
    """Filling an empty table, into which nobody else may write meanwhile: with a table that has no guard."""

    _unguarded: DynamoTable
    _guard: Guard
    _clock: Clock

    def restore(self, records: Iterable[StoredRecord], *, source: str) -> int:
        self._guard.begin_import(source)
        restored = 0
        for kind, alike in groupby(records, key=type):
            for some in chunks(alike, _TOGETHER):
                # The same entry may be needed by several records, and a batch takes a key once.
                items = {key_of(item): item for record in some for item in self._items_of(record)}
                self._unguarded.put_many(items.values())
                restored += len(some)
                if kind is Notice:
                    self._lead_to_notices([record for record in some if isinstance(record, Notice)])
        self._guard.end_import(source)
        return restored

    def is_import_unfinished(self) -> bool:
        return self._guard.is_import_unfinished()

    def _items_of(self, record: StoredRecord) -> Iterator[Item]:
        match record:
            case Owner():
                yield encode(OWNERS, record, owner_key(record.team))
            case Link():
                yield from LinkParts(self._unguarded, self._clock).items_to_restore(record)
                yield from map(entry, sorted(link_entries(record)))
            case Run():
                yield encode(RUNS, record, run_key(record.run_id))
                yield run_entry(record)
            case JobRecord():
                yield encode(JOBS, record, job_key(record.run_id, record.link_id))
                yield entry(host_entry_key(record.host, record.link_id))
            case HostChain():
                yield encode(CHAINS, record, chain_key(record.run_id, record.host))
            case HostRecord():
                yield encode(HOSTS, record, host_key(record.host))
            case Observation():
                # Its 90 days begin anew: what was just moved here must not vanish at once.
                yield observation_item(record, kept_from=self._clock.now())
            case Transition():
                yield encode(TRANSITIONS, record, transition_key(record.link_id, record.version))
            case Notice():
                yield notice_item(record)
            case Mute():
                yield encode(MUTES, record, mute_key(record.target))
            case _:
                yield encode(EXPORTED_WEEKS, record, (WEEK_LIST, format_utc(record.week)))

    def _lead_to_notices(self, notices: Sequence[Notice]) -> None:
        """Their transitions, which are there, have to name their days, and the days have to be known."""
        days = NoticeDays(self._unguarded, self._clock)
        for day in dict.fromkeys(day_of(notice.created_at) for notice in notices):
            days.open(day)
        for notice in notices:
            self._unguarded.set_attribute(
                transition_key_of(notice.transition_id), NOTICE_DAY, day_of(notice.created_at)
            )
