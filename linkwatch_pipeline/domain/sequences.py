"""Sequences order what is seen of a link. Each store keeps them up to the same limit (docs/decisions/0047)."""

from __future__ import annotations

from linkwatch_pipeline.domain.errors import DamagedRecord, InvalidInput
from linkwatch_pipeline.domain.links import Link, shown

MAX_SEQUENCE = 9_999_999_999  # ten digits: DynamoDB sorts by them as text
# What a person may jump to. A link keeps 8,999,999,999 sequences after it, which no schedule uses up.
MAX_GIVEN_SEQUENCE = 1_000_000_000
# Of a link that comes with a history: it may have gone on from the highest that was given, and has as many left.
MAX_MOVED_SEQUENCE = MAX_SEQUENCE - MAX_GIVEN_SEQUENCE


def check_sequence(value: object, field: str = "sequence", *, most: int = MAX_SEQUENCE) -> int:
    """A sequence that a store can keep, or InvalidInput. True and 1.0 are not sequences."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(field, f"{shown(value)} is not a sequence", f"Give a whole number from 0 to {most}.")
    if value > most:
        why = "leaves too few for later checks" if value <= MAX_SEQUENCE else "is beyond what a store keeps"
        raise InvalidInput(field, f"{shown(value)} {why}", f"Give a whole number from 0 to {most}.")
    return value


def check_given_sequence(value: object, link: Link | None) -> int:
    """A sequence that somebody names for a check of this link (None: a new one), or InvalidInput.

    Beyond the limit for jumps a link goes on one by one.
    """
    follows = link.highest_sequence + 1 if link is not None else 0
    return check_sequence(value, most=min(max(MAX_GIVEN_SEQUENCE, follows), MAX_SEQUENCE))


def has_next_sequence(link: Link) -> bool:
    """Whether another check of the link could be recorded."""
    return link.highest_sequence < MAX_SEQUENCE


def no_sequence_left(link: Link) -> DamagedRecord:
    """What is the matter with such a link, and its mend."""
    return DamagedRecord(
        f"link {link.id!r} cannot be checked any more: sequence {link.highest_sequence} was recorded or promised, and "
        f"{MAX_SEQUENCE} is the last one that there is. Give 'linkwatch retire {link.id}' and register its URL under "
        "another id.",
        record=f"links: {link.id}",
        url=link.url,
    )


def next_sequence(link: Link) -> int:
    """The sequence after the highest one applied or promised. Raises DamagedRecord if no store could keep it."""
    if not has_next_sequence(link):
        raise no_sequence_left(link)
    return link.highest_sequence + 1
