"""What a command does that goes on by itself when the table or the queue of all workers is out for a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from linkwatch_pipeline.domain.errors import LinkwatchError, QueueError, QueueUnusable, StoreUnavailable

if TYPE_CHECKING:
    from linkwatch_pipeline.ports import Clock

T = TypeVar("T")

SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(seconds=30)


def outlast(
    attempt: Callable[[], T],
    *,
    look: Callable[[], object],
    clock: Clock,
    wait: Callable[[timedelta], None],
    tell_outage: Callable[[LinkwatchError | None], None],
) -> T:
    """Attempt it until neither store nor queue is out of service; it has to bear being repeated.

    Args:
        look: raises what the attempt would raise, if it would.
        wait: blocks for a while.
        tell_outage: as for `follow_run`.
    Raises: what the attempt raises, also when that may pass but has lasted as long as a run may.
    """
    from linkwatch_pipeline.domain.runs import OPEN_FOR

    until: float | None = None
    pause, is_out = SHORTEST_PAUSE, False
    while True:
        try:
            if is_out:
                look()
                tell_outage(None)
                is_out = False
            return attempt()
        except QueueUnusable:
            raise
        except (QueueError, StoreUnavailable) as fault:
            now = clock.monotonic()
            until = now + OPEN_FOR.total_seconds() if until is None else until
            if now >= until:
                raise
            if not is_out:
                tell_outage(fault)
            is_out = True
        wait(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
