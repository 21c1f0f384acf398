"""The store's role as registry: which links there are, and who owns them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.links import Link, Owner
from linkwatch_pipeline.ports.damaged import Damaged


class RegistryStore(Protocol):
    """Links and owners."""

    def save_link(self, link: Link, *, replaces: Link | None) -> None:
        """Write a link's configuration and state whole.

        Args: replaces: the link as it was read, None to create it.
        Raises: StaleWrite if the stored link is not `replaces` any more (or exists already).
        """
        ...

    def save_registry(self, *, owners: Sequence[Owner] = (), links: Sequence[tuple[Link, Link | None]] = ()) -> None:
        """Write new owners and any number of links: all of them or, whatever happens in the middle, none.

        Nobody sees some of them after a crash, a full disk or a StaleWrite. Somebody who reads while it is being
        written may see some links before others, as in any listing, but never a link before its new owner.
        How a store without large transactions keeps this is in docs/decisions/0009-a-registry-is-written-whole.md.

        Args:
            owners: teams to make. One that is stored with the same address is left as it is.
            links: each with the link as it was read, None to create it. A link id stands there once.
        Raises: StaleWrite if a stored link is not as it was read any more (or exists already), or a team has another
            address.
        """
        ...

    def unfinished_since(self) -> datetime | None:
        """When the oldest `save_registry` began that is still writing, or was killed; None if there is none.

        Nothing of it counts. A later `save_registry` of one of its links, or any after an hour, ends it.
        """
        ...

    def get_link(self, link_id: str, *, brief: bool = False) -> Link | None:
        """Args: brief: leave out `places` and `also_used_by`, which may be long (`domain.links.in_brief`)."""
        ...

    def links(self, *, owner: str | None = None, damaged: Damaged | None = None) -> Iterator[Link]:
        """All links, or an owner's, in id order. Args: damaged: as in `ports.damaged`."""
        ...

    def links_by_host(
        self, *, after_host: str | None = None, brief: bool = False, damaged: Damaged | None = None
    ) -> Iterator[Link]:
        """All links in (host, id) order, streamed; only hosts that sort after `after_host` if given.

        Args:
            brief: as in `get_link`.
            damaged: as in `ports.damaged`.
        """
        ...

    def put_owner(self, owner: Owner) -> None:
        """Write or replace a team's address."""
        ...

    def get_owner(self, team: str) -> Owner | None: ...

    def owners(self) -> Iterator[Owner]:
        """All owners in team order."""
        ...
