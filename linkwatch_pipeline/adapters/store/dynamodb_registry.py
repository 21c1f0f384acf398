"""Links and owners in DynamoDB (`ports.RegistryStore`).

A link stands under its own key. Entries of a few bytes lead to it in id order, in host order and by owner; they are
written in the transaction that writes the link, and what they say is checked against the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from linkwatch_pipeline.adapters.store.dynamodb_items import (
    HOST_LIST,
    LINK_LIST,
    OWNER_LIST,
    Item,
    behind_host,
    decode,
    encode,
    link_key,
    link_of,
    owner_key,
    split_host_entry,
)
from linkwatch_pipeline.adapters.store.dynamodb_journal import Change, Journal
from linkwatch_pipeline.adapters.store.dynamodb_table import MOST_IN_GET, DynamoTable, chunks
from linkwatch_pipeline.adapters.store.rows import LINKS, OWNERS
from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.links import Link, Owner


class DynamoRegistry:
    """Links and owners."""

    _table: DynamoTable
    _journal: Journal

    def save_link(self, link: Link, *, replaces: Link | None) -> None:
        self.save_registry(links=[(link, replaces)])

    def save_registry(self, *, owners: Sequence[Owner] = (), links: Sequence[tuple[Link, Link | None]] = ()) -> None:
        changes = [change for owner in owners if (change := self._owner_change(owner)) is not None]
        for chunk in chunks(links, MOST_IN_GET):
            changes.extend(self._link_changes(chunk))
        self._journal.write(changes)

    def get_link(self, link_id: str) -> Link | None:
        item = self._journal.visible(self._table.get(link_key(link_id)))
        return link_of(item) if item is not None else None

    def links(self, *, owner: str | None = None) -> Iterator[Link]:
        if owner is None:
            return self._existing(entry["sk"]["S"] for entry in self._table.query(LINK_LIST))
        entries = self._table.query(f"OWNER#{owner}", prefix="LINK#")
        ids = (entry["sk"]["S"].removeprefix("LINK#") for entry in entries)
        return (link for link in self._existing(ids) if link.owner == owner)

    def links_by_host(self, *, after_host: str | None = None) -> Iterator[Link]:
        entries = self._table.query(HOST_LIST, after=None if after_host is None else behind_host(after_host))
        for chunk in chunks((split_host_entry(entry) for entry in entries), MOST_IN_GET):
            links = {link.id: link for link in self._existing(link_id for _, link_id in chunk)}
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
        for item in self._table.query(OWNER_LIST):
            if (seen := self._journal.visible(item)) is not None:
                yield decode(OWNERS, seen)

    def _existing(self, link_ids: Iterable[str]) -> Iterator[Link]:
        """The links that there are, in the order of their ids as given."""
        for chunk in chunks(link_ids, MOST_IN_GET):
            items = self._table.get_many(link_key(link_id) for link_id in chunk)
            for link_id in chunk:
                if (item := self._journal.visible(items.get(link_key(link_id)))) is not None:
                    yield link_of(item)

    def _owner_change(self, owner: Owner) -> Change | None:
        key = owner_key(owner.team)
        was = self._journal.settled(key)
        if was is None:
            return Change(encode(OWNERS, owner, key), was, f"owner {owner.team!r}")
        if decode(OWNERS, was).address != owner.address:
            raise StaleWrite(f"owner {owner.team!r} got another address meanwhile; read it again and decide again.")
        return None

    def _link_changes(self, links: Sequence[tuple[Link, Link | None]]) -> Iterator[Change]:
        items = self._table.get_many(link_key(link.id) for link, _ in links)
        for link, replaces in links:
            item = items.get(link_key(link.id))
            if item is not None and "pending" in item:
                item = self._journal.settled(link_key(link.id))
            _check_as_read(link, replaces, item)
            yield Change(encode(LINKS, link, link_key(link.id)), item, f"link {link.id!r}")


def _check_as_read(link: Link, replaces: Link | None, item: Item | None) -> None:
    """Raise StaleWrite unless the stored link is the one that is to be replaced."""
    if replaces is None and item is not None:
        raise StaleWrite(f"link {link.id!r} exists already; read it and decide again.")
    if replaces is not None and (item is None or LINKS.encode(link_of(item)) != LINKS.encode(replaces)):
        raise StaleWrite(f"link {link.id!r} changed since it was read; read it again and decide again.")
