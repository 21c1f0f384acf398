"""Notices that were refused for good go on once what kept them is mended: a new address, or a person's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.telling import version_of
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.damage import each_alone
from linkwatch_pipeline.use_cases.set_aside import OUTLIVED, error_of, owner_of


def reopen_refused(store: Store, *, now: datetime, damaged: Damaged, whatever_address: bool = False) -> None:
    """Make each refused notice due again whose team has another address now; one that is out of date is discarded.

    Args: whatever_address: somebody says that the fault is mended, so the address need not have changed.
    """

    def reopen(refused: Notice) -> None:
        if refused.status is NoticeStatus.FAILED and (whatever_address or _has_another_address(store, refused)):
            # Whoever changed it meanwhile knows more.
            store.update_notice(due_again(store, refused, outlived=OUTLIVED, now=now), replaces=refused)

    each_alone(list(store.notices(unsettled_only=True, damaged=damaged)), reopen, damaged)


def _has_another_address(store: Store, refused: Notice) -> bool:
    owner = owner_of(store, refused)
    return owner is not None and owner.address != refused.recipient


def due_again(store: Store, stopped: Notice, *, outlived: str, now: datetime) -> Notice:
    """The notice, due now; discarded, for the reason `outlived`, if the link has changed since: it would mislead."""
    siblings = store.notices(link_id=stopped.link_id)
    if any(version_of(other) > version_of(stopped) for other in siblings):
        return replace(
            stopped, status=NoticeStatus.DISCARDED, last_error=error_of(stopped, outlived), next_attempt_at=None
        )
    return replace(stopped, status=NoticeStatus.PENDING, release_at=now, next_attempt_at=None)
