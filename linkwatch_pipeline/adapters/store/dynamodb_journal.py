"""More items than one transaction takes, written all or none (docs/decisions/0009-a-registry-is-written-whole.md).

While they are being written each item is *marked*: it names a journal item and has its new content in `next` beside the
old one. The journal turning `committed` is the moment at which all of the new content is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    Item,
    Key,
    entry,
    item_bytes,
    key_attributes,
    key_of,
    link_entries,
    link_of,
    text,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict
from linkwatch_pipeline.adapters.store.dynamodb_table import (
    BYTES_IN_TRANSACTION,
    MOST_IN_TRANSACTION,
    Delete,
    DynamoTable,
    Entry,
    Operation,
    Put,
)
from linkwatch_pipeline.domain.errors import StaleWrite, StoreError
from linkwatch_pipeline.domain.timestamps import format_utc, parse_utc
from linkwatch_pipeline.ports import Clock

T = TypeVar("T")

View = Callable[[Item | None], Item | None]
_OPEN, _COMMITTED, _ABORTED = "open", "committed", "aborted"
_JOURNAL, _NEXT = "pending", "next"
_BATCHES = "BATCHES"  # names the journals that are not settled, so that nobody has to look for them at every link
_GIVEN_UP_AFTER = timedelta(hours=1)  # 10,000 links take half a minute


@dataclass(frozen=True, slots=True)
class Change:
    """A link or owner as it shall be. `was` is its item as it was read; `called` is for the person."""

    item: Item
    was: Item | None
    called: str

    def operations(self) -> list[Operation]:
        """All of it for a single transaction."""
        added, dropped = _entry_changes(self.was, self.item)
        return [Put(self.item, self.was), *(Entry(entry(key)) for key in added), *(Delete(key) for key in dropped)]

    def marks(self, journal: str) -> list[Operation]:
        """The item with both contents, and entries that lead to it; they are harmless while nobody sees the new one."""
        added, _ = _entry_changes(self.was, self.item)
        marked = {**(self.was or key_attributes(key_of(self.item))), _JOURNAL: text(journal), _NEXT: {"M": self.item}}
        return [Put(marked, self.was), *(Entry(entry(key)) for key in added)]


class Journal:
    """Writes many changes whole, and knows what counts of an item that is being written."""

    def __init__(self, table: DynamoTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def write(self, changes: Sequence[Change]) -> None:
        """All changes or none. Raises StaleWrite if one of the items is not as it was read any more."""
        self._end_forgotten()
        operations = [(change, operation) for change in changes for operation in change.operations()]
        if len(operations) > MOST_IN_TRANSACTION or _bytes(only for _, only in operations) > BYTES_IN_TRANSACTION:
            self._write_in_steps(changes)
            return
        try:
            self._table.write([operation for _, operation in operations])
        except Conflict as conflict:
            raise stale(operations[conflict.failed[0]][0].called) from conflict

    def unfinished_since(self) -> datetime | None:
        """When the oldest batch was begun that is neither written nor given up; None if there is none."""
        batches = {_journal_key(text_of(item, "sk")): item for item in self._table.query(_BATCHES)}
        journals = self._table.get_many(batches) if batches else {}
        is_open = (key for key, journal in journals.items() if text_of(journal, "state") == _OPEN)
        return min((parse_utc(text_of(batches[key], "begun_at")) for key in is_open), default=None)

    def _end_forgotten(self) -> None:
        """Give up what somebody began long ago, so that `health` does not warn for ever if nobody repeats it."""
        long_ago = format_utc(self._clock.now() - _GIVEN_UP_AFTER)
        old = [item for item in self._table.query(_BATCHES) if text_of(item, "begun_at") < long_ago]
        for item in old:
            self._ended(text_of(item, "sk"))
        self._table.delete_many(map(key_of, old))

    def visible(self, item: Item | None) -> Item | None:
        """What counts of an item as it was read: the item itself unless it is marked.

        Nothing is written, so that whoever may only read can read everything. Who writes the item next settles it.
        """
        return self.view()(item)

    def view(self) -> View:
        """`visible` for the items of one listing: each journal is asked for once, however many items name it.

        One that was open when it was asked for stays so for this listing, which is no snapshot anyway.
        """
        states: dict[str, str] = {}

        def visible(item: Item | None) -> Item | None:
            while item is not None and is_marked(item):
                name = text_of(item, _JOURNAL)
                if name not in states and (journal := self._table.get(_journal_key(name))) is not None:
                    states[name] = text_of(journal, "state")
                if name in states:
                    return _content(item, _COMMITTED if states[name] == _COMMITTED else _ABORTED)
                item = self._table.get(key_of(item))  # its journal is gone: it was settled since it was read
            return item

        return visible

    def settled(self, key: Key) -> Item | None:
        """The item, free of marks, for somebody who is going to write it: who is still writing it has to give up."""
        item = self._table.get(key)
        return self.settled_many([item]).get(key) if item is not None else None

    def settled_many(self, items: Iterable[Item]) -> dict[Key, Item]:
        """As `settled`, of items as they were read. Those of one journal are settled together, not each by itself."""
        found = {key_of(item): item for item in items}
        while marked := [item for item in found.values() if is_marked(item)]:
            for name in dict.fromkeys(text_of(item, _JOURNAL) for item in marked):
                state = self._ended(name)
                if state is not None:  # else it is gone: the items were settled since they were read
                    self._settle_marked([item for item in marked if text_of(item, _JOURNAL) == name], state)
            for item in marked:
                del found[key_of(item)]
            found.update(self._table.get_many(map(key_of, marked)))
        return found

    def _write_in_steps(self, changes: Sequence[Change]) -> None:
        journal = self._table.new_id()
        begun = {"begun_at": text(format_utc(self._clock.now()))}
        opened = {**key_attributes(_journal_key(journal)), **begun, "state": text(_OPEN)}
        self._table.transact([Put(opened, None), Entry({**key_attributes((_BATCHES, journal)), **begun})])
        try:
            for group in _groups(changes, lambda change: change.marks(journal)):
                self._mark(group, journal)
            self._decide(journal, _COMMITTED)
        except Exception:
            # A store that does not answer cannot be tidied: whoever meets the marks does it then.
            with suppress(StoreError, Conflict):
                self._decide(journal, _ABORTED)
                self._settle_all(changes, journal)
            raise
        with suppress(StoreError):  # all of it is true already
            self._settle_all(changes, journal)

    def _mark(self, group: Sequence[Change], journal: str) -> None:
        operations = [(change, operation) for change in group for operation in change.marks(journal)]
        try:
            self._table.transact([operation for _, operation in operations])
        except Conflict as conflict:
            raise stale(operations[conflict.failed[0]][0].called) from conflict

    def _decide(self, journal: str, state: str) -> str:
        """Turn an open journal into `state`; what it is afterwards. Raises StaleWrite if it was aborted by others."""

        def attempt() -> str:
            item = self._table.get(_journal_key(journal))
            if item is None:
                return state  # long settled, and forgotten
            if text_of(item, "state") == _OPEN:
                self._table.put({**item, "state": text(state)}, was=item)
                return state
            return text_of(item, "state")

        decided = self._table.patience.until_undisturbed(attempt)
        if (state, decided) == (_COMMITTED, _ABORTED):
            raise StaleWrite("what was to be written was changed by somebody else meanwhile; read it again.")
        return decided

    def _settle_all(self, changes: Sequence[Change], journal: str) -> None:
        state = self._decide(journal, _ABORTED)
        keys = [key_of(change.item) for change in changes]
        for start in range(0, len(keys), MOST_IN_TRANSACTION // 4):  # an item and at most three entries each
            found = self._table.get_many(keys[start : start + MOST_IN_TRANSACTION // 4]).values()
            marked = [item for item in found if item.get(_JOURNAL) == text(journal)]
            self._settle_marked(marked, state)
        self._table.delete_many([_journal_key(journal), (_BATCHES, journal)])

    def _settle_marked(self, marked: Sequence[Item], state: str) -> None:
        """Take the marks off. Items that somebody else was at meanwhile are left as he leaves them."""
        for group in _groups(marked, lambda item: _settling(item, state)):
            try:
                self._table.transact([operation for item in group for operation in _settling(item, state)])
            except Conflict:
                for item in group if len(group) > 1 else ():
                    with suppress(Conflict):
                        self._table.transact(_settling(item, state))

    def _ended(self, name: str) -> str | None:
        """What a journal, ended now, says of the items that name it; None if it is gone: they are settled by then."""
        found = self._table.get(_journal_key(name))
        if found is None:
            return None
        return self._decide(name, _ABORTED) if text_of(found, "state") == _OPEN else text_of(found, "state")


def is_marked(item: Item) -> bool:
    """Whether the item is being written, with many others."""
    return _JOURNAL in item


def following(item: Item) -> Item | None:
    """What a marked item is about to be; None if it is not marked."""
    return _content(item, _COMMITTED) if is_marked(item) else None


def _settling(item: Item, state: str) -> list[Operation]:
    """What turns a marked item into the content that counts, and its entries with it."""
    old, new = _content(item, _ABORTED), _content(item, _COMMITTED)
    kept, other = (new, old) if state == _COMMITTED else (old, new)
    _, dropped = _entry_changes(other, kept)
    first: Operation = Put(kept, item) if kept is not None else Delete(key_of(item), item)
    return [first, *(Delete(key) for key in dropped)]


def _content(item: Item, state: str) -> Item | None:
    """The old or the new content of a marked item; None if there is none."""
    if state == _COMMITTED:
        return dict(item[_NEXT]["M"])
    old = {name: value for name, value in item.items() if name not in (_JOURNAL, _NEXT)}
    return old if set(old) - {"pk", "sk", "w"} else None


def _entry_changes(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> tuple[list[Key], list[Key]]:
    """The entries that have to be made and those that lead nowhere afterwards.

    A host's entry stays when its link moves to another host: jobs of that host may still be found by it.
    """
    old, new = (_entries(item) for item in (before, now))
    dropped = old - new
    if now is not None:
        dropped = {key for key in dropped if key[0].startswith("OWNER#")}
    return sorted(new - old), sorted(dropped)


def _entries(item: Mapping[str, Any] | None) -> set[Key]:
    return link_entries(link_of(item)) if item is not None and item["pk"]["S"].startswith("LINK#") else set()


def _journal_key(name: str) -> Key:
    return f"JOURNAL#{name}", "JOURNAL"


def _groups(things: Iterable[T], operations_of: Callable[[T], Sequence[Operation]]) -> Iterator[list[T]]:
    """The things in portions whose operations fit a transaction each."""
    group: list[T] = []
    count = size = 0
    for thing in things:
        operations = operations_of(thing)
        needs = _bytes(operations)
        if group and (count + len(operations) > MOST_IN_TRANSACTION or size + needs > BYTES_IN_TRANSACTION):
            yield group
            group, count, size = [], 0, 0
        group.append(thing)
        count += len(operations)
        size += needs
    if group:
        yield group


def _bytes(operations: Iterable[Operation]) -> int:
    """About how much DynamoDB counts for a transaction: what is written, or what stands there if that is more."""
    return sum(
        max(item_bytes(getattr(operation, "item", None)), item_bytes(getattr(operation, "was", None)))
        for operation in operations
    )


def stale(called: str) -> StaleWrite:
    return StaleWrite(f"{called} changed since it was read; read it again and decide again.")
