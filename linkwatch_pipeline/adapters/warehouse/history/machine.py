"""The state machine over arrays: all links at once, by the rules of `domain.transitions.advance`.

Only the bookkeeping is done in arrays. Each look that changes a state, but for the baseline, is handed to `advance`
itself, which makes the transition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from linkwatch_pipeline.adapters.warehouse.history.answers import KINDS, Answer
from linkwatch_pipeline.adapters.warehouse.history.fates import Flags, Numbers
from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.transitions import Transition, advance

_STATES = (LinkState.UNKNOWN, LinkState.REACHABLE, LinkState.BROKEN)
_UNKNOWN, _REACHABLE, _BROKEN = range(3)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Machine:
    """The states of `links` links, all unknown at first."""

    def __init__(self, links: int, *, confirm: int) -> None:
        self._confirm = confirm
        self._state = np.full(links, _UNKNOWN, dtype=np.int64)
        self._since = np.zeros(links, dtype=np.int64)  # microseconds; meaningless while unknown
        self._version = np.zeros(links, dtype=np.int64)
        self.last_sequence = np.full(links, -1, dtype=np.int64)
        self._streak = np.zeros(links, dtype=np.int64)
        self._is = {
            outcome: np.array([KINDS[answer].verdict.outcome is outcome for answer in Answer], dtype=np.bool_)
            for outcome in (Outcome.REACHABLE, Outcome.BROKEN)
        }

    def changing(self, link: Numbers, answer: Numbers) -> Numbers:
        """The numbers of the links that these looks would move worth telling, ascending."""
        target = self._target(link, answer)
        baseline = (self._state[link] == _UNKNOWN) & (target == _REACHABLE)
        changed: Numbers = link[(target != self._state[link]) & ~baseline]
        return changed

    def advance(
        self,
        link: Numbers,
        answer: Numbers,
        sequence: Numbers,
        at: Numbers,
        told: Mapping[int, tuple[Link, Observation]],
    ) -> Iterator[tuple[Link, Transition, Observation]]:
        """Apply one look at each of these links; what is worth telling, with the link afterwards.

        Args:
            at: microseconds since 1970.
            told: the link as it was registered and the look, for each of `changing`.
        """
        changes = [self._advance_one(number, *told[number]) for number in sorted(told)]
        target = self._target(link, answer)
        found, broken = self._is[Outcome.REACHABLE][answer], self._is[Outcome.BROKEN][answer]
        self._streak[link] = np.where(found, 0, self._streak[link] + broken)
        moved: Flags = target != self._state[link]
        self._since[link] = np.where(moved, at, self._since[link])
        self._version[link] += moved
        self._state[link] = target
        self.last_sequence[link] = sequence
        yield from changes

    def link(self, number: int, registered: Link) -> Link:
        """A link with its present state."""
        known = self._state[number] != _UNKNOWN
        return replace(
            registered,
            state=_STATES[self._state[number]],
            state_since=_EPOCH + timedelta(microseconds=int(self._since[number])) if known else None,
            version=int(self._version[number]),
            last_sequence=int(self.last_sequence[number]),
            broken_streak=int(self._streak[number]),
        )

    def _target(self, link: Numbers, answer: Numbers) -> Numbers:
        """The state that these looks lead to."""
        confirmed = self._is[Outcome.BROKEN][answer] & (self._streak[link] + 1 >= self._confirm)
        target: Numbers = np.where(
            self._is[Outcome.REACHABLE][answer], _REACHABLE, np.where(confirmed, _BROKEN, self._state[link])
        )
        return target

    def _advance_one(self, number: int, registered: Link, seen: Observation) -> tuple[Link, Transition, Observation]:
        after, transition = advance(
            self.link(number, registered),
            outcome=seen.outcome,
            sequence=seen.sequence,
            job_id=seen.job_id,
            at=seen.observed_at,
            default_confirm=self._confirm,
        )
        if transition is None:
            raise AssertionError(f"the arrays and the state machine differ about {seen.job_id}")
        return after, transition, seen
