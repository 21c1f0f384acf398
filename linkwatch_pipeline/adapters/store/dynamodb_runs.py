"""Runs in DynamoDB, and the sequences that they give to links (`ports.RunStore`; the rest is in `dynamodb_chains`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    OVER,
    RUN_LIST,
    Item,
    decode,
    encode,
    entry,
    key_of,
    link_key,
    link_of,
    number,
    run_key,
)
from linkwatch_pipeline.adapters.store.dynamodb_journal import Journal
from linkwatch_pipeline.adapters.store.dynamodb_parts import LinkParts
from linkwatch_pipeline.adapters.store.dynamodb_table import MOST_IN_GET, DynamoTable, Entry, Put, chunks
from linkwatch_pipeline.adapters.store.readable import readable
from linkwatch_pipeline.adapters.store.rows import RUNS
from linkwatch_pipeline.domain.errors import NotFound
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.domain.runs import Ruling, Run, RunCounts, RunState, gives_way
from linkwatch_pipeline.domain.sequences import has_next_sequence, next_sequence
from linkwatch_pipeline.ports import Damaged


class DynamoRuns:
    """Runs."""

    _table: DynamoTable
    _journal: Journal
    _parts: LinkParts

    def create_run(self, run: Run) -> Run:
        # The entry first: one that leads nowhere is passed by, a run that nothing leads to would be forgotten.
        self._table.put_if_absent(entry((RUN_LIST, run.run_id)))
        if not self._table.put_if_absent(encode(RUNS, run, run_key(run.run_id))):
            return self._take_place(run)
        if run.state.is_over:
            self._table.put_many([run_entry(run)])
        return run

    def _take_place(self, run: Run) -> Run:
        """The stored run, replaced if it is void."""

        def attempt() -> Run:
            item, stored = stored_run(self._table, run.run_id)
            if not gives_way(stored, run):
                return stored
            self._table.transact([Put(encode(RUNS, run, run_key(run.run_id)), item), Entry(run_entry(run))])
            return run

        return self._table.patience.until_undisturbed(attempt)

    def get_run(self, run_id: str) -> Run | None:
        item = self._table.get(run_key(run_id))
        return decode(RUNS, item) if item is not None else None

    def runs(self, *, open_only: bool = False, damaged: Damaged | None = None) -> Iterator[Run]:
        entries = (item for item in self._table.query(RUN_LIST) if not (open_only and OVER in item))
        for chunk in chunks(entries, MOST_IN_GET):
            keys = [run_key(item["sk"]["S"]) for item in chunk]
            items = self._table.get_many(keys)
            found = (items[key] for key in keys if key in items)
            for run in readable(found, lambda item: decode(RUNS, item), damaged):
                if not (open_only and run.state.is_over):
                    yield run

    def allocate(self, links: Sequence[Link], slot: AllocationSlot, run_id: str) -> list[Allocation | None]:
        allocated: list[Allocation | None] = []
        for chunk in chunks(links, MOST_IN_GET):
            items = self._journal.settled_many(self._table.get_many(link_key(link.id) for link in chunk).values())
            for link in chunk:
                allocated.append(self._allocate(link, slot, run_id, items.get(link_key(link.id))))
        return allocated

    def save_dispatch_progress(self, run_id: str, *, cursor: str, dispatched: int) -> None:
        def attempt() -> None:
            item = self._table.get(run_key(run_id))
            run = decode(RUNS, item) if item is not None else None
            if run is None or run.state is not RunState.DISPATCHING or (run.cursor or "") >= cursor:
                return
            self._replace_run(replace(run, cursor=cursor, dispatched=max(run.dispatched, dispatched)), item)

        self._table.patience.until_undisturbed(attempt)

    def finish_dispatch(self, run_id: str, *, expected: int, at: datetime) -> Run:
        def attempt() -> Run:
            item, run = stored_run(self._table, run_id)
            if run.state is RunState.DISPATCHING:
                run = replace(run, state=RunState.OPEN, expected=expected, dispatched=expected, dispatched_at=at)
                self._replace_run(run, item)
            return run

        return self._table.patience.until_undisturbed(attempt)

    def close_run(self, run_id: str, *, totals: RunCounts, at: datetime) -> Run:
        def attempt() -> Run:
            item, run = stored_run(self._table, run_id)
            if not run.state.is_over:
                run = replace(run, state=RunState.CLOSED, totals=totals, closed_at=at)
                put = Put(encode(RUNS, run, run_key(run_id)), item)
                self._table.transact([put, Entry(run_entry(run))])
            return run

        return self._table.patience.until_undisturbed(attempt)

    def rule_on_run(self, run_id: str, ruling: Ruling, *, replaces: Ruling | None) -> bool:
        def attempt() -> bool:
            item, run = stored_run(self._table, run_id)
            if run.ruling != replaces:
                return False
            self._replace_run(replace(run, ruling=ruling), item)
            return True

        return self._table.patience.until_undisturbed(attempt)

    def prune_runs(self, *, started_before: datetime) -> int:
        over = (run for run in self.runs(damaged=lambda _: None) if run.state.is_over and not run.is_held)
        old = [run for run in over if run.started_at < started_before]
        for run in old:
            pk, meta = run_key(run.run_id)
            # The summary last: a run whose pruning was interrupted is found again.
            self._table.delete_many(key for item in self._table.query(pk) if (key := key_of(item)) != (pk, meta))
            self._table.delete_many([(pk, meta)])
            self._table.delete_many([(RUN_LIST, run.run_id)])
        return len(old)

    def _replace_run(self, run: Run, was: Item | None) -> None:
        self._table.put(encode(RUNS, run, run_key(run.run_id)), was=was)

    def _allocate(self, link: Link, slot: AllocationSlot, run_id: str, read: Item | None) -> Allocation | None:
        begun = [read]  # what the batch found, for the first attempt

        def attempt() -> Allocation | None:
            item = begun.pop() if begun else self._journal.settled(link_key(link.id))
            if item is None:
                return None
            allocation, changed = _allocation(link_of(item), link, slot, run_id)
            if changed is not None:
                self._table.put(self._parts.item_with_state(changed, item), was=item)
            return allocation

        return self._table.patience.until_undisturbed(attempt)


def stored_run(table: DynamoTable, run_id: str) -> tuple[Item, Run]:
    """A run and the item that holds it. Raises NotFound."""
    item = table.get(run_key(run_id))
    if item is None:
        raise NotFound(f"there is no run {run_id}.")
    return item, decode(RUNS, item)


def run_entry(run: Run) -> Item:
    """Leads to a run; says when it is over, so that ticks pass it by."""
    return {**entry((RUN_LIST, run.run_id)), **({OVER: number(1)} if run.state.is_over else {})}


def _allocation(stored: Link, link: Link, slot: AllocationSlot, run_id: str) -> tuple[Allocation | None, Link | None]:
    """The sequence that the run gets for the stored link, and the link to write for it, None if it holds it already."""
    held = stored.allocations.get(slot)
    if held is not None and held.run_id == run_id:
        return held, None
    if _configured(stored) != _configured(link) or not has_next_sequence(stored):
        return None, None
    allocation = Allocation(
        run_id=run_id,
        sequence=next_sequence(stored),
        host=stored.host,
        config_version=stored.config_version,
    )
    return allocation, replace(stored, allocations={**stored.allocations, slot: allocation})


def _configured(link: Link) -> tuple[str, int, datetime | None]:
    return link.url, link.config_version, link.retired_at
