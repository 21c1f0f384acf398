"""What an owner was told last of a link, and what that makes worth telling now (SPEC 10).

A mute or a refusal can keep a notice from its owner. What was told, not what was seen, decides what is told next: a
recovery whose break nobody heard of is not announced alone, and after a mute only a difference is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus, is_possible_duplicate

# Accepted by a provider, as far as is known. What is in doubt counts as told: saying "it works again" too often is
# better than leaving somebody with a break that is none. A mail that came back told nobody.
_TOLD = frozenset(
    {
        NoticeStatus.SENT,
        NoticeStatus.DELIVERED,
        NoticeStatus.COMPLAINED,
        NoticeStatus.SENDING,
        NoticeStatus.UNKNOWN,
    }
)


def told_state(notices: Iterable[Notice]) -> LinkState:
    """The state that the owner last heard of, from all notices of a link; `reachable` if nobody was ever told."""
    told = [notice for notice in notices if notice.status in _TOLD or is_possible_duplicate(notice)]
    return max(told, key=version_of).to_state if told else LinkState.REACHABLE


def waits_for_earlier(notice: Notice, notices: Iterable[Notice]) -> bool:
    """Whether an earlier notice of the same link may still be sent: mails about a link keep their order."""
    return any(_may_still_go(other) for other in notices if version_of(other) < version_of(notice))


def is_overtaken(notice: Notice, notices: Iterable[Notice]) -> bool:
    """Whether a later change of the same link was settled without telling it: this one alone would mislead."""
    untold = (NoticeStatus.MUTED, NoticeStatus.DISCARDED)
    return any(other.status in untold for other in notices if version_of(other) > version_of(notice))


def is_lone_recovery(notice: Notice, notices: Iterable[Notice]) -> bool:
    """Whether the notice would announce that a link works again to somebody who never heard that it did not."""
    if notice.to_state is not LinkState.REACHABLE:
        return False
    earlier = [other for other in notices if version_of(other) < version_of(notice)]
    return told_state(earlier) is not LinkState.BROKEN


def untold_difference(link: Link, notices: Sequence[Notice]) -> Notice | None:
    """The muted notice that tells how a link is now, if that differs from what its owner was told last."""
    if not notices:
        return None
    newest = max(notices, key=version_of)
    differs = link.state is not told_state(notices)
    return newest if newest.status is NoticeStatus.MUTED and newest.to_state is link.state and differs else None


def version_of(notice: Notice) -> int:
    """Its place among the notices of its link: the version in its transition id."""
    return int(notice.transition_id.rpartition(":")[2])


def _may_still_go(notice: Notice) -> bool:
    if notice.status is NoticeStatus.UNKNOWN:
        return notice.next_attempt_at is not None
    return not notice.status.is_settled and notice.status is not NoticeStatus.FAILED
