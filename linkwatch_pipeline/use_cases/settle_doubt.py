"""A person ends the doubt about a mail whose answer was lost: it arrived, or it is to be sent again (SPEC 10).

What is said of one notice holds for all that its mail told and that are still in doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, NotFound
from linkwatch_pipeline.domain.notices import LOST_ANSWER, Notice, NoticeStatus, is_possible_duplicate
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.deliver import notices_of_mail
from linkwatch_pipeline.use_cases.reopen import due_again

logger = logging.getLogger(__name__)

OUTLIVED_IN_DOUBT = "the link changed again before it was sent again"


def settle_doubts(store: Store, *, arrived: Iterable[str], again: Iterable[str], now: datetime) -> list[Notice]:
    """Write down what a person knows of mails in doubt, all or nothing as far as what was said is wrong.

    Args:
        arrived: transitions whose mail is in the mailbox: `delivered`.
        again: transitions whose mail is not: due now, once more; discarded if the link has changed since, as one that
            was refused would be.
    Returns: the notices as they are now, those of a digest all.
    Raises: NotFound, ConflictingContent (it is not in doubt, or changed meanwhile), InvalidInput (named in both).
    """
    came, lost = dict.fromkeys(arrived), dict.fromkeys(again)
    if both := sorted(came.keys() & lost.keys()):
        raise InvalidInput("notice", f"{both[0]} is said to have arrived and to be sent again", "Say one of them.")
    told = {notice.transition_id: (notice, True) for name in came for notice in _in_doubt(store, name)}
    untold = {notice.transition_id: (notice, False) for name in lost for notice in _in_doubt(store, name)}
    if mixed := sorted(told.keys() & untold.keys()):
        raise InvalidInput("notice", f"the mail of {mixed[0]} is said to have arrived and not", "Say one of them.")
    return [_settle(store, notice, came=came, now=now) for notice, came in (told | untold).values()]


def _in_doubt(store: Store, transition_id: str) -> list[Notice]:
    """The notice and those in its mail about which nothing is known either."""
    notice = store.get_notice(transition_id)
    if notice is None:
        raise NotFound(f"there is no notice {transition_id!r}; 'linkwatch outbox' shows them.")
    if notice.status is not NoticeStatus.UNKNOWN:
        raise ConflictingContent(f"notice {transition_id} is {notice.status.value}; only an unknown one is in doubt.")
    others = notices_of_mail(store, notice.mail_id) if notice.mail_id is not None else []
    return [notice, *(o for o in others if o.status is NoticeStatus.UNKNOWN and o.transition_id != transition_id)]


def _settle(store: Store, notice: Notice, *, came: bool, now: datetime) -> Notice:
    if came:
        sent_at = notice.sent_at or now
        settled = replace(notice, status=NoticeStatus.DELIVERED, sent_at=sent_at, next_attempt_at=None)
    else:
        doubted = notice if is_possible_duplicate(notice) else replace(notice, last_error=LOST_ANSWER)
        settled = due_again(store, doubted, outlived=OUTLIVED_IN_DOUBT, now=now)
    if not store.update_notice(settled, replaces=notice):
        raise ConflictingContent(f"notice {notice.transition_id} changed meanwhile; look at it and say it again.")
    extra = {"action": "deliver", "transition_id": notice.transition_id, "to_status": settled.status.value}
    logger.info("a person ended the doubt", extra=extra)
    return settled
