"""The queue: which check jobs are ready, handed out at least once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from linkwatch_pipeline.domain.runs import CheckJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One delivery of a message: `handle` acknowledges exactly this delivery; `receive_count` begins at 1."""

    job: CheckJob
    handle: str
    receive_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayLetter:
    """A dead letter that no redrive can help: no message of ours, or one whose job was not given up.

    `beginning` are its first characters without what may be secret; empty for a message of ours.
    """

    letter_id: str
    problem: str
    beginning: str


class Queue(Protocol):
    """Ready work. Delivery is at least once; a message not acknowledged comes back after its visibility timeout.

    After `max_receives` deliveries (5) a message becomes a dead letter instead of coming back.
    """

    def verify(self) -> None:
        """Raise QueueError, saying why, unless the queue is there and answers us. No message is touched.

        Raises: DeadLettersElsewhere if those do not go to the queue that is named for them, DeadLettersLost if it is
            not there.
        """
        ...

    def send(self, jobs: Sequence[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        """Add messages that become visible after `delay` (0 to 900 s)."""
        ...

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        """Visible messages, hidden from now on for the visibility timeout (180 s); [] when there are none."""
        ...

    def acknowledge(self, receipt: Receipt) -> None:
        """Delete the message. An outdated receipt is ignored."""
        ...

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        """Let the message come back after `delay` instead. An outdated receipt is ignored."""
        ...

    def next_visible_in(self) -> timedelta | None:
        """How long until a message may be received; zero when one is, None when nothing waits or nobody can know."""
        ...

    def visible(self) -> int:
        """How many messages anybody could receive now, as far as is known."""
        ...

    def dead_letters(self) -> list[CheckJob]:
        """The messages that were given up, oldest first; reading does not remove them.

        A queue that many share may show some of very many: the others when those are removed.
        """
        ...

    def unreadable_letters(self) -> list[StrayLetter]:
        """What lies among the dead letters and is no message, oldest first; reading does not remove it."""
        ...

    def remove_dead_letter(self, job_id: str) -> bool:
        """Take one out of the dead letters, an unreadable one by its `letter_id`; whether it was there."""
        ...
