"""Links and owners in DynamoDB (`ports.RegistryStore`).

A link stands under its own key. Entries of a few bytes lead to it in id order, in host order and by owner; they are
written in the transaction that writes the link, and what they say is checked against the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    HOST_LIST,
    LINK_LIST,
    OWNER_LIST,
    Item,
    behind_host,
    decode,
    encode,
    link_id_of,
    link_key,
    link_of,
    owner_key,
    split_host_entry,
)
from linkwatch_pipeline.adapters.store.dynamodb_journal import Change, Journal, View, stale
from linkwatch_pipeline.adapters.store.dynamodb_parts import LinkParts
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict
from linkwatch_pipeline.adapters.store.dynamodb_table import MOST_IN_GET, DynamoTable, chunks
from linkwatch_pipeline.adapters.store.readable import readable
from linkwatch_pipeline.adapters.store.rows import LINKS, OWNERS
from linkwatch_pipeline.domain.errors import StaleWrite, StoreError, StoreUnavailable
from linkwatch_pipeline.domain.links import Link, Owner, in_brief
from linkwatch_pipeline.ports import Damaged


class DynamoRegistry:
    """Links and owners."""

    _table: DynamoTable
    _journal: Journal
    _parts: LinkParts

    def save_link(self, link: Link, *, replaces: Link | None) -> None:
        self.save_registry(links=[(link, replaces)])

    def save_registry(self, *, owners: Sequence[Owner] = (), links: Sequence[tuple[Link, Link | None]] = ()) -> None:
        changes = [change for owner in owners if (change := self._owner_change(owner)) is not None]
        try:
            for chunk in chunks(links, MOST_IN_GET):
                for change in self._link_changes(chunk):
                    changes.append(change)
            self._journal.write(changes)
        except StoreUnavailable:
            raise  # it may have been carried out, and the parts be named by what nobody could tell us of
        except StoreError:
            with suppress(StoreError):
                self._parts.forget_prepared(changes)
            raise
        with suppress(StoreError):  # all of it is true already
            self._parts.forget_replaced(changes)

    def unfinished_since(self) -> datetime | None:
        return self._journal.unfinished_since()

    def get_link(self, link_id: str, *, brief: bool = False) -> Link | None:
        def attempt() -> Link | None:
            item = self._journal.visible(self._table.get(link_key(link_id)))
            if item is None:
                return None
            return in_brief(link_of(item)) if brief else self._parts.whole(item)

        return self._table.patience.until_undisturbed(attempt)

    def links(self, *, owner: str | None = None, damaged: Damaged | None = None) -> Iterator[Link]:
        visible = self._journal.view()
        if owner is None:
            return self._existing((entry["sk"]["S"] for entry in self._table.query(LINK_LIST)), damaged, visible)
        entries = self._table.query(f"OWNER#{owner}", prefix="LINK#")
        ids = (entry["sk"]["S"].removeprefix("LINK#") for entry in entries)
        return (link for link in self._existing(ids, damaged, visible) if link.owner == owner)

    def links_by_host(
        self, *, after_host: str | None = None, brief: bool = False, damaged: Damaged | None = None
    ) -> Iterator[Link]:
        visible = self._journal.view()
        entries = self._table.query(HOST_LIST, after=None if after_host is None else behind_host(after_host))
        for chunk in chunks((split_host_entry(entry) for entry in entries), MOST_IN_GET):
            found = self._existing((id_ for _, id_ in chunk), damaged, visible, brief=brief)
            links = {link.id: link for link in found}
            for host, link_id in chunk:
                # A link that moved has left an entry on its old host.
                if link_id in links and links[link_id].host == host:
                    yield links[link_id]

    def put_owner(self, owner: Owner) -> None:
        key = owner_key(owner.team)

        def attempt() -> None:
            self._table.put(encode(OWNERS, owner, key), was=self._journal.settled(key))

        self._table.patience.until_undisturbed(attempt)

    def get_owner(self, team: str) -> Owner | None:
        item = self._journal.visible(self._table.get(owner_key(team)))
        return decode(OWNERS, item) if item is not None else None

    def owners(self) -> Iterator[Owner]:
        visible = self._journal.view()
        for item in self._table.query(OWNER_LIST):
            if (seen := visible(item)) is not None:
                yield decode(OWNERS, seen)

    def _existing(
        self, link_ids: Iterable[str], damaged: Damaged | None, visible: View, *, brief: bool = False
    ) -> Iterator[Link]:
        """The links that there are, in the order of their ids as given."""
        for chunk in chunks(link_ids, MOST_IN_GET):
            found = self._table.get_many(link_key(link_id) for link_id in chunk)
            seen = readable((found.get(link_key(link_id)) for link_id in chunk), visible, damaged)
            items = [item for item in seen if item is not None]
            if brief:
                yield from readable(items, lambda item: in_brief(link_of(item)), damaged)
                continue
            for link in readable(self._parts.whole_many(items, damaged), self._as_it_is_now, damaged):
                if link is not None:
                    yield link

    def _as_it_is_now(self, read: tuple[Item, Link | None]) -> Link | None:
        """A link of `LinkParts.whole_many`, read again if it was changed since."""
        item, link = read
        return link or self.get_link(link_id_of(item))

    def _owner_change(self, owner: Owner) -> Change | None:
        key = owner_key(owner.team)
        was = self._journal.settled(key)
        if was is None:
            return Change(encode(OWNERS, owner, key), was, f"owner {owner.team!r}")
        if decode(OWNERS, was).address != owner.address:
            raise StaleWrite(f"owner {owner.team!r} got another address meanwhile; read it again and decide again.")
        return None

    def _link_changes(self, links: Sequence[tuple[Link, Link | None]]) -> Iterator[Change]:
        items = self._journal.settled_many(self._table.get_many(link_key(link.id) for link, _ in links).values())
        for link, replaces in links:
            item = items.get(link_key(link.id))
            stored = self._stored(link, item) if item is not None else None
            _check_as_read(link, replaces, stored)
            yield Change(self._parts.item_of(link, was=item, stored=stored), item, f"link {link.id!r}")

    def _stored(self, link: Link, item: Item) -> Link:
        try:
            return self._parts.whole(item)
        except Conflict as changed:
            raise stale(f"link {link.id!r}") from changed


def _check_as_read(link: Link, replaces: Link | None, stored: Link | None) -> None:
    """Raise StaleWrite unless the stored link is the one that is to be replaced."""
    if replaces is None and stored is not None:
        raise StaleWrite(f"link {link.id!r} exists already; read it and decide again.")
    if replaces is not None and (stored is None or LINKS.encode(stored) != LINKS.encode(replaces)):
        raise stale(f"link {link.id!r}")
