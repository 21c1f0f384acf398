"""A made-up history, to see reports and a full store before there is a real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.links import Link, Owner
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import Run
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports.warehouse import ExportedWeek


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRun:
    """A made-up run as it will have closed, and its looks in (link, sequence) order."""

    run: Run
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedWeek:
    """A made-up week that is in the warehouse: its closed runs, and the changes that it made."""

    exported: ExportedWeek
    runs: tuple[Run, ...]
    transitions: tuple[Transition, ...]
    notices: tuple[Notice, ...]


class History(Protocol):
    """A made-up history of links. Its weeks are asked for in order, each once, in one of two ways."""

    def owners(self) -> Sequence[Owner]: ...

    def links(self) -> Iterator[Link]:
        """The links as they stand after the weeks that were played; before the first, as registered."""
        ...

    def next_week(self, week: datetime) -> Iterator[ScriptedRun]:
        """The looks of a week's runs, for somebody who records them one by one."""
        ...

    def play_week(self, week: datetime) -> PlayedWeek:
        """Record a week's looks straight into the warehouse, with what a store would have made of them."""
        ...
