"""One look at one link, in one sentence."""

from __future__ import annotations

from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.transitions import Transition


def told(observation: Observation, link: Link, result: str, transition: Transition | None) -> str:
    """What was seen and what it did. `result` is `applied`, `history` or `duplicate`."""
    reason = f" ({observation.reason.value})" if observation.reason is not None else ""
    seen = f"{observation.job_id} {observation.outcome.value}{reason}"
    if result == "duplicate":
        return f"duplicate: {seen} was recorded before; nothing changed"
    if result == "history":
        return f"history: {seen} is older than sequence {link.last_sequence}; {link.id} stays {link.state.value}"
    if transition is not None:
        change = f"{transition.from_state.value} -> {transition.to_state.value}"
        return f"applied: {seen}; {link.id} {change}, notice {transition.id}"
    if observation.outcome is Outcome.BROKEN and link.state is not LinkState.BROKEN:
        confirm = f"until more failures in a row confirm it ({link.broken_streak} so far)"
        return f"applied: {seen}; {link.id} stays {link.state.value} {confirm}"
    return f"applied: {seen}; {link.id} is {link.state.value}"
