"""The store's role as outbox: what is to be told to owners, and what stops it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.ports.damaged import Damaged


class OutboxStore(Protocol):
    """Notices, and what stops their delivery."""

    def notices(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        unsettled_only: bool = False,
        damaged: Damaged | None = None,
    ) -> Iterator[Notice]:
        """Notices in (created_at, transition id) order. `unsettled_only` leaves out those that are sent or settled
        otherwise (delivered, bounced, complained, muted, discarded); failed ones stay in.

        Args: damaged: as in `ports.damaged`.
        """
        ...

    def get_notice(self, transition_id: str) -> Notice | None: ...

    def claim_notice(self, transition_id: str, *, by: str, now: datetime) -> Notice | None:
        """Take a claimable notice (`domain.notices.is_claimable`) conditionally; None if somebody else was faster."""
        ...

    def save_notice(self, notice: Notice, *, claimed_by: str) -> bool:
        """Write the delivery fields of a notice that `claimed_by` still holds; False (nothing written) otherwise."""
        ...

    def update_notice(self, notice: Notice, *, replaces: Notice) -> bool:
        """Write the delivery fields of a notice, whoever holds it; False (nothing written) if it is not as in
        `replaces` any more. A holder whose claim this ends cannot save its own word afterwards."""
        ...

    def mutes(self, *, damaged: Damaged | None = None) -> Iterator[Mute]:
        """All mutes, those that ended included, in target order.

        Args: damaged: as in `ports.damaged`; its key is the target of the mute.
        """
        ...

    def save_mute(self, mute: Mute, *, replaces: Mute | None) -> bool:
        """Write a target's mute whole; False (nothing written) if the stored one is not `replaces` (None: absent)."""
        ...
