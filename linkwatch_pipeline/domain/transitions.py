"""The state machine of one link (SPEC 4) with its confirmation threshold (SPEC 12.1).

`throttled`, `uncertain` and `content_changed` keep the state and the streak. `broken` raises the streak and enters
`broken` when it reaches `confirm`. `reachable` resets the streak and enters `reachable` at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of state worth telling; its id is `link:version`. `since` is when the old state began, if known."""

    id: str
    link_id: str
    from_state: LinkState
    to_state: LinkState
    version: int
    sequence: int
    job_id: str
    at: datetime
    since: datetime | None = None


def advance(
    link: Link,
    *,
    outcome: Outcome,
    sequence: int,
    job_id: str,
    at: datetime,
    default_confirm: int,
) -> tuple[Link, Transition | None]:
    """Apply one observation to a link.

    Args:
        at: when it was observed (UTC).
        default_confirm: failing observations needed where the link itself says nothing, 1 or more.
    Returns: the link afterwards, and the transition if owners have to hear of it. An older or equal sequence
        changes nothing; the baseline (`unknown` to `reachable`) raises the version without a transition.
    """
    if sequence <= link.last_sequence:
        return link, None
    link = replace(link, last_sequence=sequence)
    if outcome is Outcome.REACHABLE:
        link = replace(link, broken_streak=0)
        target = LinkState.REACHABLE
    elif outcome is Outcome.BROKEN:
        link = replace(link, broken_streak=link.broken_streak + 1)
        confirmed = link.broken_streak >= (link.confirm or default_confirm)
        target = LinkState.BROKEN if confirmed else link.state
    else:
        target = link.state
    if target is link.state:
        return link, None
    changed = replace(link, state=target, state_since=at, version=link.version + 1)
    if link.state is LinkState.UNKNOWN and target is LinkState.REACHABLE:
        return changed, None
    transition = Transition(
        id=transition_id(link.id, changed.version),
        link_id=link.id,
        from_state=link.state,
        to_state=target,
        version=changed.version,
        sequence=sequence,
        job_id=job_id,
        at=at,
        since=link.state_since,
    )
    return changed, transition


def transition_id(link_id: str, version: int) -> str:
    """`guide:2`: the stable identity of a meaningful change."""
    return f"{link_id}:{version}"


def escaped_id(value: str) -> str:
    """`guide_3a2`: an id as letters, digits, `-` and `_hh` alone, for file names, provider tags and message ids."""
    return re.sub(r"[^A-Za-z0-9-]", lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode()), value)


def unescaped_id(value: str) -> str | None:
    """What `escaped_id` was given; None if it cannot have made this."""
    try:
        raw = re.sub(rb"_([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), value.encode("ascii"))
        text = raw.decode()
    except ValueError:
        return None
    return text if escaped_id(text) == value else None
