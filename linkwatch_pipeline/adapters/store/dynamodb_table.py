"""The one table: reads that follow every page, conditional writes that recognise themselves, transactions, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    WRITE_ID,
    Item,
    Key,
    StoredItem,
    key_attributes,
    key_of,
    text,
)
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict, Patience, Unfinished

T = TypeVar("T")

MOST_IN_TRANSACTION = 100
BYTES_IN_TRANSACTION = 3_000_000  # as we estimate them; DynamoDB takes 4 MB
MOST_IN_GET = 100
MOST_IN_WRITE = 25


@dataclass(frozen=True, slots=True)
class Put:
    """Write an item whole. `was` is the item as it was read, None if there was none."""

    item: Item
    was: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Entry:
    """Write an item that is always the same, whether or not it is there."""

    item: Item


@dataclass(frozen=True, slots=True)
class Delete:
    """Take an item away, if it is still as it was read when `was` is given."""

    key: Key
    was: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Nothing may be written unless this holds of an item."""

    key: Key
    condition: str
    values: Mapping[str, Any]


Operation = Put | Entry | Delete | Check


class DynamoTable:
    """Every call to DynamoDB goes through here.

    Args:
        client: a boto3 client of `dynamodb` that does not repeat requests by itself.
        new_id: a name that no other write has or had.
        page_items: how many items a page holds at most; None leaves it to DynamoDB (1 MB).
    """

    def __init__(
        self,
        client: Any,
        name: str,
        *,
        patience: Patience,
        new_id: Callable[[], str],
        page_items: int | None = None,
    ) -> None:
        self.patience = patience
        self.new_id = new_id
        self.name = name
        self._client = client
        self._may_write: Callable[[], None] = lambda: None
        self._limit = {} if page_items is None else {"Limit": page_items}

    def until(self, moment: float) -> DynamoTable:
        """The same table, of which nothing is asked after a moment (of the clock's monotonic seconds)."""
        bounded = copy(self)
        bounded.patience = replace(self.patience, until=moment)
        return bounded

    def guarded_by(self, may_write: Callable[[], None]) -> DynamoTable:
        """The same table, which asks before it writes. Args: may_write: raises StoreError if that is not allowed."""
        guarded = copy(self)
        guarded._may_write = may_write
        return guarded

    def close(self) -> None:
        self._client.close()

    def get(self, key: Key) -> Item | None:
        """The item as the last finished write left it."""
        answer = self._send(
            lambda: self._client.get_item(TableName=self.name, Key=key_attributes(key), ConsistentRead=True)
        )
        item: Item | None = answer.get("Item")
        return StoredItem(item, self.name) if item is not None else None

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Item]:
        """The items that are there, by key."""
        found: dict[Key, Item] = {}
        for chunk in chunks(dict.fromkeys(keys), MOST_IN_GET):
            found.update((key_of(item), item) for item in self._batch_get(chunk))
        return found

    def query(self, pk: str, *, prefix: str | None = None, after: str | None = None, **filters: Any) -> Iterator[Item]:
        """The items of a partition in `sk` order, over all pages; only those that begin with `prefix` or sort `after`.

        Args: filters: `FilterExpression` and `ExpressionAttributeValues` for attributes outside the key.
        """
        condition, values = "pk = :pk", {":pk": text(pk)}
        if prefix is not None:
            condition, values = f"{condition} AND begins_with(sk, :sk)", {**values, ":sk": text(prefix)}
        elif after is not None:
            condition, values = f"{condition} AND sk > :sk", {**values, ":sk": text(after)}
        given = dict(filters)
        given["ExpressionAttributeValues"] = {**values, **filters.get("ExpressionAttributeValues", {})}
        return self._pages(self._client.query, KeyConditionExpression=condition, **given)

    def scan(self, condition: str, values: Mapping[str, Any] | None = None) -> Iterator[Item]:
        """All items of the table that satisfy a condition: reads the whole table."""
        given = {} if values is None else {"ExpressionAttributeValues": values}
        return self._pages(self._client.scan, FilterExpression=condition, **given)

    def put(self, item: Item, *, was: Mapping[str, Any] | None) -> None:
        """Write one item if it is still as it was read (absent, if None). Raises Conflict.

        A write whose answer was lost is met again when it is repeated: it carries its own id.
        """
        stamped = self._stamped(item)
        condition, values = _as_read(was)

        def request() -> None:
            try:
                self._client.put_item(
                    TableName=self.name,
                    Item=stamped,
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **({"ExpressionAttributeValues": values} if values else {}),
                )
            except ClientError as error:
                if error.response.get("Item", {}).get(WRITE_ID) != stamped[WRITE_ID]:
                    raise

        self._write(request)

    def put_if_absent(self, item: Item) -> bool:
        """Whether the item was written; False if there is one already."""
        try:
            self.put(item, was=None)
        except Conflict:
            return False
        return True

    def delete(self, key: Key, *, was: Mapping[str, Any]) -> None:
        """Take one item away if it is still as it was read. Raises Conflict."""
        condition, values = _as_read(was)
        self._write(
            lambda: self._client.delete_item(
                TableName=self.name,
                Key=key_attributes(key),
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        )

    def set_attribute(self, key: Key, name: str, value: str) -> None:
        """Write one attribute of an item that is there. Raises Conflict if it is not."""
        self._write(
            lambda: self._client.update_item(
                TableName=self.name,
                Key=key_attributes(key),
                UpdateExpression="SET #name = :value",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeNames={"#name": name},
                ExpressionAttributeValues={":value": text(value)},
            )
        )

    def transact(self, operations: Sequence[Operation]) -> None:
        """Carry all of it out, or nothing. Raises Conflict with the places of the conditions that did not hold.

        One client token for all repetitions: what was carried out, though its answer was lost, is not done again.
        """
        items = [self._transaction_item(operation) for operation in operations]
        token = self.new_id()
        self._write(lambda: self._client.transact_write_items(TransactItems=items, ClientRequestToken=token))

    def write(self, operations: Sequence[Operation]) -> None:
        """As `transact`, for half the price if it is one conditional item only."""
        if len(operations) == 1 and isinstance(only := operations[0], Put):
            self.put(only.item, was=only.was)
        elif operations:
            self.transact(operations)

    def put_many(self, items: Iterable[Item]) -> None:
        """Write items whatever is there, each by itself, without any order."""
        for chunk in chunks(items, MOST_IN_WRITE):
            self._batch_write([{"PutRequest": {"Item": self._stamped(item)}} for item in chunk])

    def delete_many(self, keys: Iterable[Key]) -> None:
        """Take items away, each by itself, without any order."""
        for chunk in chunks(keys, MOST_IN_WRITE):
            self._batch_write([{"DeleteRequest": {"Key": key_attributes(key)}} for key in chunk])

    def _send(self, request: Callable[[], T]) -> T:
        return self.patience.call(request)

    def _write(self, request: Callable[[], T]) -> T:
        self._may_write()
        return self.patience.call(request)

    def _pages(self, read: Callable[..., Any], **how: Any) -> Iterator[Item]:
        start: Mapping[str, Any] = {}
        while True:
            asked = {**how, **self._limit, **start}
            page = self._send(lambda asked=asked: read(TableName=self.name, ConsistentRead=True, **asked))  # type: ignore[misc]
            yield from (StoredItem(item, self.name) for item in page["Items"])
            if not page.get("LastEvaluatedKey"):
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _batch_get(self, keys: Sequence[Key]) -> Iterator[Item]:
        left: list[Item] = [key_attributes(key) for key in keys]

        def some() -> list[Item]:
            request = {self.name: {"Keys": left, "ConsistentRead": True}}
            answer = self._send(lambda: self._client.batch_get_item(RequestItems=request))
            left[:] = answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
            found.extend(StoredItem(item, self.name) for item in answer["Responses"].get(self.name, []))
            if left:
                raise Unfinished  # 16 MB are full, or the table is busy
            return found

        found: list[Item] = []
        yield from self.patience.until_undisturbed(some)

    def _batch_write(self, requests: list[Any]) -> None:
        left = list(requests)

        def some() -> None:
            answer = self._write(lambda: self._client.batch_write_item(RequestItems={self.name: list(left)}))
            left[:] = answer.get("UnprocessedItems", {}).get(self.name, [])
            if left:
                raise Unfinished

        self.patience.until_undisturbed(some)

    def _stamped(self, item: Item) -> Item:
        return {**item, WRITE_ID: text(self.new_id())}

    def _transaction_item(self, operation: Operation) -> dict[str, Any]:
        match operation:
            case Put(item=item, was=was):
                return {"Put": {"TableName": self.name, "Item": self._stamped(item), **_conditioned(*_as_read(was))}}
            case Entry(item=item):
                return {"Put": {"TableName": self.name, "Item": item}}
            case Delete(key=key, was=was):
                wanted = _conditioned(*_as_read(was)) if was is not None else {}
                return {"Delete": {"TableName": self.name, "Key": key_attributes(key), **wanted}}
            case Check(key=key, condition=condition, values=values):
                wanted = _conditioned(condition, values)
                return {"ConditionCheck": {"TableName": self.name, "Key": key_attributes(key), **wanted}}


def _as_read(was: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    """The condition that an item is as it was read, with its values."""
    return ("attribute_not_exists(pk)", {}) if was is None else (f"{WRITE_ID} = :was", {":was": was[WRITE_ID]})


def _conditioned(condition: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"ConditionExpression": condition, **({"ExpressionAttributeValues": values} if values else {})}


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`."""
    left = iter(values)
    while chunk := list(islice(left, size)):
        yield chunk
