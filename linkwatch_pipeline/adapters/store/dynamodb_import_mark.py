"""The mark of a history that is being imported: while it is there, nobody else may write into the table."""

from __future__ import annotations

from linkwatch_pipeline.adapters.store.dynamodb_items import Item, Key, key_attributes, text, text_of
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable
from linkwatch_pipeline.domain.errors import ImportUnfinished, StaleWrite
from linkwatch_pipeline.ports import Clock

_KEY: Key = ("RESTORE", "RESTORE")
_BEGUN, _DONE = "begun", "done"
# An import begins in an empty table alone, and nobody writes into one that somebody else is about to fill.
_LOOK_AGAIN_AFTER = 60.0  # seconds


class ImportMark:
    """Whether an import is unfinished. Threads may share one. Args: table: without a guard."""

    def __init__(self, table: DynamoTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._looked_at: float | None = None

    def is_unfinished(self) -> bool:
        mark = self._table.get(_KEY)
        return mark is not None and text_of(mark, "state") == _BEGUN

    def refuse_writing(self) -> None:
        """Raise ImportUnfinished while an import is. Asks the table once a minute."""
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_AGAIN_AFTER:
            return
        if self.is_unfinished():
            raise ImportUnfinished
        self._looked_at = now

    def begin(self, source: str) -> None:
        """Begin an import, or go on with it. Raises StaleWrite unless the table is empty or holds a part of it."""
        begun = _mark(source, _BEGUN)
        mark = self._table.get(_KEY)
        if mark is None and next(self._table.scan("attribute_exists(pk)"), None) is None:
            mark = begun if self._table.put_if_absent(begun) else self._table.get(_KEY)
        if mark is None or text_of(mark, "state") != _BEGUN:
            raise StaleWrite("the store is not empty, so nothing was imported. Name a new table.")
        if text_of(mark, "source") != source:
            raise StaleWrite("the store holds a part of another history, so nothing was imported. Name a new table.")

    def end(self, source: str) -> None:
        """Everything is there."""
        self._table.put_many([_mark(source, _DONE)])


def _mark(source: str, state: str) -> Item:
    return {**key_attributes(_KEY), "source": text(source), "state": text(state)}
