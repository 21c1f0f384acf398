"""What a table says of itself: the number of its schema, and that a history is being imported into it.

Both are read together before a write, once a minute: code that is older than the table's schema does not write into it,
and while an import is unfinished nobody else does.
"""

from __future__ import annotations

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    Item,
    Key,
    damaged_item,
    key_attributes,
    key_of,
    number,
    text,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable
from linkwatch_pipeline.domain.errors import ImportUnfinished, StaleWrite, StoreUnusable
from linkwatch_pipeline.ports import Clock

# 1: what a link says at length stands in its item; such a table has no number. 2: it stands beside it, in parts.
SCHEMA = 2
_SCHEMA_KEY: Key = ("SCHEMA", "SCHEMA")
_IMPORT_KEY: Key = ("RESTORE", "RESTORE")
_BEGUN, _DONE = "begun", "done"
# An import begins in an empty table alone, and nobody writes into one that somebody else is about to fill.
_LOOK_AGAIN_AFTER = 60.0  # seconds


class Guard:
    """Whether this code may write into the table. Threads may share one. Args: table: without a guard."""

    def __init__(self, table: DynamoTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._looked_at: float | None = None

    def is_import_unfinished(self) -> bool:
        """Raises StoreUnusable if a newer linkwatch wrote the table. Nothing is written."""
        return _is_begun(self._look()[1])

    def refuse_use(self) -> None:
        """Raise StoreUnusable if the table is a newer linkwatch's, or an import unfinished. Nothing is written."""
        if self.is_import_unfinished():
            raise ImportUnfinished

    def refuse_writing(self) -> None:
        """As `refuse_use`, and number a table that is of an older schema. Asks the table once a minute."""
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_AGAIN_AFTER:
            return

        def attempt() -> None:
            schema, mark = self._look()
            if _is_begun(mark):
                raise ImportUnfinished
            self._number(schema)

        self._table.patience.until_undisturbed(attempt)
        self._looked_at = now

    def begin_import(self, source: str) -> None:
        """Begin an import, or go on with it. Raises StaleWrite unless the table is empty or holds a part of it."""
        begun = _mark(source, _BEGUN)
        _, mark = self._look()
        if mark is None and self._is_empty():
            mark = begun if self._table.put_if_absent(begun) else self._table.get(_IMPORT_KEY)
        if mark is None or not _is_begun(mark):
            raise StaleWrite("the store is not empty, so nothing was imported. Name a new table.")
        if text_of(mark, "source") != source:
            raise StaleWrite("the store holds a part of another history, so nothing was imported. Name a new table.")
        self._table.patience.until_undisturbed(lambda: self._number(self._look()[0]))

    def end_import(self, source: str) -> None:
        """Everything is there."""
        self._table.put_many([_mark(source, _DONE)])

    def _look(self) -> tuple[Item | None, Item | None]:
        """The items of schema and import. Raises StoreUnusable if the schema is newer than this code."""
        found = self._table.get_many([_SCHEMA_KEY, _IMPORT_KEY])
        schema = found.get(_SCHEMA_KEY)
        if (version := _version(schema)) > SCHEMA:
            raise StoreUnusable(
                f"the DynamoDB table {self._table.name!r} has schema version {version}, written by a newer linkwatch; "
                f"this one knows version {SCHEMA}. Upgrade linkwatch or name another table."
            )
        return schema, found.get(_IMPORT_KEY)

    def _number(self, schema: Item | None) -> None:
        """Say which schema is written from now on. Raises Conflict if somebody else just said it."""
        if _version(schema) < SCHEMA:
            self._table.put({**key_attributes(_SCHEMA_KEY), "version": number(SCHEMA)}, was=schema)

    def _is_empty(self) -> bool:
        """Whether nothing is there but a number: the writer who came to say it may have died then."""
        return all(key_of(item) == _SCHEMA_KEY for item in self._table.scan("attribute_exists(pk)"))


def _is_begun(mark: Item | None) -> bool:
    return mark is not None and text_of(mark, "state") == _BEGUN


def _version(schema: Item | None) -> int:
    if schema is None:
        return 1
    try:
        version = int(schema["version"]["N"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_item(schema, "version is not a whole number") from error
    if version < 1:
        raise damaged_item(schema, f"there is no version {version}")
    return version


def _mark(source: str, state: str) -> Item:
    return {**key_attributes(_IMPORT_KEY), "source": text(source), "state": text(state)}
