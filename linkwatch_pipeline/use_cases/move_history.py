"""Everything that a store holds, in an order in which another store can take it."""

from __future__ import annotations

from collections.abc import Iterator

from linkwatch_pipeline.ports import Store, StoredRecord


def everything(store: Store) -> Iterator[StoredRecord]:
    """All records, one after the other; what a record belongs to comes before it. Nobody may write meanwhile."""
    yield from store.owners()
    yield from store.links()
    yield from store.runs()
    for run in store.runs():
        yield from store.jobs(run.run_id)
        yield from store.chains(run.run_id)
    yield from store.hosts()
    yield from store.observations()
    yield from store.transitions()
    yield from store.notices()
    yield from store.mutes()
    yield from store.exported_weeks()
