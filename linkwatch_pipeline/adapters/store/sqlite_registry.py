"""Links and owners in SQLite (`ports.RegistryStore`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwatch_pipeline.adapters.store.rows import LINKS, OWNERS
from linkwatch_pipeline.adapters.store.sqlite_database import Database
from linkwatch_pipeline.adapters.store.sqlite_transactions import Transaction
from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.links import Link, Owner, in_brief
from linkwatch_pipeline.ports import Damaged


class SqliteRegistry:
    """Links and owners."""

    _database: Database

    def save_link(self, link: Link, *, replaces: Link | None) -> None:
        self.save_registry(links=[(link, replaces)])

    def save_registry(self, *, owners: Sequence[Owner] = (), links: Sequence[tuple[Link, Link | None]] = ()) -> None:
        with self._database.transaction() as write:
            for owner in owners:
                _put_owner(write, owner)
            for link, replaces in links:
                _put_link(write, link, replaces)

    def unfinished_since(self) -> None:
        return None  # a transaction that was killed has left nothing

    def get_link(self, link_id: str, *, brief: bool = False) -> Link | None:
        link = self._database.get(LINKS, link_id)
        return in_brief(link) if link is not None and brief else link

    def links(self, *, owner: str | None = None, damaged: Damaged | None = None) -> Iterator[Link]:
        if owner is None:
            return self._database.stream(LINKS, order=("id",), damaged=damaged)
        # links_by_owner
        return self._database.stream(LINKS, "owner = ?", values=(owner,), order=("id",), damaged=damaged)

    def links_by_host(
        self, *, after_host: str | None = None, brief: bool = False, damaged: Damaged | None = None
    ) -> Iterator[Link]:
        # links_by_host. U+10FFFF sorts after every id, so a stream can begin behind a host's last link.
        after = () if after_host is None else (after_host, "\U0010ffff")
        links = self._database.stream(LINKS, order=("host", "id"), after=after, damaged=damaged)
        return map(in_brief, links) if brief else links

    def put_owner(self, owner: Owner) -> None:
        with self._database.transaction() as write:
            if not write.insert_if_absent(OWNERS, owner):
                write.update(OWNERS, owner)

    def get_owner(self, team: str) -> Owner | None:
        return self._database.get(OWNERS, team)

    def owners(self) -> Iterator[Owner]:
        return self._database.stream(OWNERS, order=("team",))


def _put_owner(write: Transaction, owner: Owner) -> None:
    if write.insert_if_absent(OWNERS, owner):
        return
    stored = write.get(OWNERS, owner.team)
    if stored is None or stored.address != owner.address:
        raise StaleWrite(f"owner {owner.team!r} got another address meanwhile; read it again and decide again.")


def _put_link(write: Transaction, link: Link, replaces: Link | None) -> None:
    if replaces is None:
        if not write.insert_if_absent(LINKS, link):
            raise StaleWrite(f"link {link.id!r} exists already; read it and decide again.")
        return
    stored = write.get(LINKS, link.id)
    if stored is None or LINKS.encode(stored) != LINKS.encode(replaces):
        raise StaleWrite(f"link {link.id!r} changed since it was read; read it again and decide again.")
    write.update(LINKS, link)
