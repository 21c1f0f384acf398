"""What a link says at length, its places and who else uses it, beside its item (docs/decisions/0043).

Short lists stand in the link's item. Longer ones are cut into parts under a name that no other change has: parts are
written before the link's item names them, and never changed. So the one conditional write of that item decides what
counts, however many parts there are, and a check neither reads nor writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    Item,
    Key,
    StoredItem,
    damaged_item,
    encode,
    key_attributes,
    key_of,
    link_key,
    link_of,
    number,
    part_key,
    parts_prefix,
    text,
    text_of,
)
from linkwatch_pipeline.adapters.store.dynamodb_journal import Change, following, is_marked
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable
from linkwatch_pipeline.adapters.store.readable import readable
from linkwatch_pipeline.adapters.store.rows import LINKS
from linkwatch_pipeline.domain.links import LONG_FIELDS, Link
from linkwatch_pipeline.domain.timestamps import format_utc
from linkwatch_pipeline.ports import Clock, Damaged

MOST_INSIDE = 300  # bytes in the link's own item, which with them mostly stays below 1 KB
PART_BYTES = 60_000  # an item takes 400 KB; a batch of 100 parts stays below the 16 MB that one read answers
_NAME, _COUNT, _TEXT, _MADE_AT = "parts", "parts_count", "text", "made_at"
_RESTORED = "restored"  # the name of parts in a table that is being filled: a repetition puts the same items
# Parts that no item names are somebody's who is just writing, or who died; nobody writes for so long.
_FORGOTTEN_AFTER = timedelta(days=1)


class LinkParts:
    """Reads links whole, and makes the items of links with what they say at length."""

    def __init__(self, table: DynamoTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def whole(self, item: Item) -> Link:
        """The link of an item, as it was when the item was read. Raises Conflict if that is over."""
        ((_, link),) = self.whole_many([item])
        if link is not None:
            return link
        now = self._table.get(key_of(item))
        # One that is being written has the old name beside the new one until somebody tidies.
        if now is not None and _name_of(now) == _name_of(item) and not is_marked(now):
            raise damaged_item(item, "it names parts that are not there")
        raise Conflict

    def whole_many(self, items: Iterable[Item], damaged: Damaged | None = None) -> Iterator[tuple[Item, Link | None]]:
        """Items with their links; None for one that was changed since it was read.

        Args: damaged: as in `ports.damaged`.
        """
        named = list(readable(items, lambda item: (item, _part_keys(item)), damaged))
        parts = self._table.get_many(key for _, keys in named for key in keys)
        return readable(named, lambda each: (each[0], _with_parts(*each, parts)), damaged)

    def item_of(self, link: Link, *, was: Item | None = None, stored: Link | None = None) -> Item:
        """The item of a link whose parts are there. What they say is written only if it is not what is stored.

        Args: was, stored: the link as it stands there, as item and whole.
        """
        same = stored is not None and all(getattr(link, name) == getattr(stored, name) for name in LONG_FIELDS)
        return _item(link, self._long_of(was) if was is not None and same else self._put(link))

    def item_with_state(self, link: Link, was: Item) -> Item:
        """The item of a link of which nothing that it says at length has changed; `link` may be in brief."""
        return _item(link, self._long_of(was))

    def items_to_restore(self, link: Link) -> Iterator[Item]:
        """The parts of a link, then its item."""
        parts = self._parts_of(link, _RESTORED)
        yield from parts
        yield _item(link, _named(_RESTORED, parts) if parts else _inside(link))

    def forget_replaced(self, changes: Iterable[Change]) -> None:
        """The changes are true: delete the parts that nothing leads to any more."""
        for change in changes:
            if _name_of(change.item) != _name_of(change.was):
                self._forget(change.item, change.was)

    def forget_prepared(self, changes: Iterable[Change]) -> None:
        """The changes were refused: delete the parts that were written for them, unless one is named after all."""
        prepared = [change.item for change in changes if _name_of(change.item) != _name_of(change.was)]
        now = self._table.get_many(map(key_of, prepared))
        unnamed = [item for item in prepared if not _names_parts_of(now.get(key_of(item)), item)]
        self._table.delete_many(key for item in unnamed for key in _part_keys(item))

    def _forget(self, item: Item, was: Item | None) -> None:
        pk, _ = key_of(item)
        long_ago = format_utc(self._clock.now() - _FORGOTTEN_AFTER)
        kept, replaced = parts_prefix(_name_of(item)), parts_prefix(_name_of(was))
        parts = ((key_of(part), text_of(part, _MADE_AT)) for part in self._table.query(pk, prefix=parts_prefix()))
        self._table.delete_many(
            key
            for key, made_at in parts
            if not key[1].startswith(kept) and (key[1].startswith(replaced) or made_at < long_ago)
        )

    def _long_of(self, was: Item) -> Item:
        """What the item has of it. An item of an earlier linkwatch that has much inside gets parts now."""
        return self._put(link_of(was)) if _inside_bytes(was) > MOST_INSIDE else _long_attributes(was)

    def _put(self, link: Link) -> Item:
        name = self._table.new_id()
        parts = self._parts_of(link, name)
        self._table.put_many(parts)
        return _named(name, parts) if parts else _inside(link)

    def _parts_of(self, link: Link, name: str) -> list[Item]:
        """The parts of what a link says at length; none if it is short."""
        # JSON without spaces has no line end, and is ASCII: a character is a byte.
        said = "\n".join(LINKS.encode(link, LONG_FIELDS))
        if len(said) <= MOST_INSIDE:
            return []
        made_at = text(format_utc(self._clock.now()))
        return [
            {
                **key_attributes(part_key(link_key(link.id)[0], name, place)),
                _TEXT: text(said[start : start + PART_BYTES]),
                _MADE_AT: made_at,
            }
            for place, start in enumerate(range(0, len(said), PART_BYTES))
        ]


def _item(link: Link, long: Item) -> Item:
    item = encode(LINKS, link, link_key(link.id))
    return {**{name: value for name, value in item.items() if name not in LONG_FIELDS}, **long}


def _inside(link: Link) -> Item:
    return dict(zip(LONG_FIELDS, map(text, LINKS.encode(link, LONG_FIELDS)), strict=True))


def _named(name: str, parts: Sequence[Item]) -> Item:
    return {_NAME: text(name), _COUNT: number(len(parts))}


def _long_attributes(item: Item) -> Item:
    return {name: item[name] for name in (*LONG_FIELDS, _NAME, _COUNT) if name in item}


def _inside_bytes(item: Item) -> int:
    return sum(len(item[name]["S"]) for name in LONG_FIELDS if name in item)


def _name_of(item: Item | None) -> str:
    """The name of an item's parts; '-', which none has, if there are no parts."""
    return text_of(item, _NAME) if item is not None and _NAME in item else "-"


def _names_parts_of(now: Item | None, item: Item) -> bool:
    """Whether an item, or what it is about to be, names the parts of the other."""
    return now is not None and _name_of(item) in (_name_of(now), _name_of(following(now)))


def _part_keys(item: Item) -> list[Key]:
    if _NAME not in item:
        return []
    try:
        name, count = item[_NAME]["S"], int(item[_COUNT]["N"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_item(item, f"{_NAME} or {_COUNT} cannot be read") from error
    return [part_key(key_of(item)[0], name, place) for place in range(count)]


def _with_parts(item: Item, keys: Sequence[Key], parts: Mapping[Key, Any]) -> Link | None:
    if not keys:
        return link_of(item)
    if any(key not in parts for key in keys):
        return None
    said = "".join(text_of(parts[key], _TEXT) for key in keys).split("\n")
    if len(said) != len(LONG_FIELDS):
        raise damaged_item(item, "its parts cannot be read")
    return link_of(
        StoredItem({**item, **dict(zip(LONG_FIELDS, map(text, said), strict=True))}, getattr(item, "table", ""))
    )
