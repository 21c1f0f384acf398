"""Telling on-call: what is due is written down first, then handed to every destination until each has taken it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.alarms import AlarmState, after_look, is_taken
from linkwatch_pipeline.domain.errors import AlarmNotTaken
from linkwatch_pipeline.domain.health_findings import Finding
from linkwatch_pipeline.ports import AlarmDestination, AlarmMemory

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How many alarms were handed over, and what destinations that did not take one had to say."""

    taken: int = 0
    problems: tuple[str, ...] = ()


def tell_alarms(
    memory: AlarmMemory,
    destinations: Mapping[str, AlarmDestination],
    findings: Iterable[Finding],
    *,
    source: str,
    now: datetime,
) -> Told:
    """Remember that somebody looked and what was found, and tell what on-call does not know yet.

    Each alarm is handed over at least once: a crash between the two may repeat it, under the same id. A destination
    that fails is offered its alarms again, in their order, at the next look. If another process tells right now, it
    knows as much, and nothing is done.

    Args: source: who looked.  destinations: by name.
    """
    with memory.alone() as before:
        if before is None:
            return Told()
        state = after_look(before, findings, source=source, destinations=destinations, now=now)
        _remember(memory, state)
        taken, problems = 0, list[str]()
        for name, destination in destinations.items():
            for alarm in state.waiting[name]:
                try:
                    destination.tell(alarm)
                except AlarmNotTaken as failure:
                    problems.append(str(failure))
                    break  # its order is kept, and a destination that is down is not waited for twice
                taken += 1
                state = is_taken(state, name, alarm)
                _remember(memory, state)
        return Told(taken=taken, problems=tuple(problems))


def _remember(memory: AlarmMemory, state: AlarmState) -> None:
    """A full disk must not silence the alarm about it: then it may be told twice."""
    try:
        memory.save(state)
    except OSError as error:
        logger.warning("what on-call was told cannot be kept", extra={"action": "tell_alarms", "error": str(error)})
