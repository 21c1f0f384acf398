"""What a use case does about records that cannot be read: each costs itself and is named (docs/decisions/0045)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.mutes import is_target
from linkwatch_pipeline.domain.runs import Run
from linkwatch_pipeline.ports import Damaged, Store

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Damage:
    """Collects the damaged records that a use case met (it is a `Damaged`): each once, and each is logged."""

    def __init__(self) -> None:
        self._met: dict[str, DamagedRecord] = {}

    def __call__(self, error: DamagedRecord) -> None:
        if str(error) not in self._met:
            self._met[str(error)] = error
            logger.warning("left out: %s", error, extra={"action": "left_out", "record": error.record})

    @property
    def records(self) -> tuple[DamagedRecord, ...]:
        return tuple(self._met.values())


def each_alone(things: Iterable[T], do: Callable[[T], object], damaged: Damaged) -> None:
    """Do it for each thing. One for which a damaged record would have to be read is told, and the others follow."""
    for thing in things:
        try:
            do(thing)
        except DamagedRecord as error:
            damaged(error)


def read_runs(store: Store, damaged: Damaged) -> tuple[list[Run], list[DamagedRecord]]:
    """The runs that can be read, and those that cannot, which are told too."""
    unread: list[DamagedRecord] = []
    runs = list(store.runs(damaged=unread.append))
    for error in unread:
        damaged(error)
    return runs, unread


def refuse_damaged_run(run_id: str | None, unread: Iterable[DamagedRecord]) -> None:
    """For who has to know what was decided about a run. Raises the one of these damaged runs that it may be."""
    for error in unread if run_id is not None else ():
        if error.key is None or error.key == run_id:
            raise error


def unless_mute_of(targets: Collection[str]) -> Damaged:
    """For who has to know whether these are muted: raises if a damaged mute may be one of theirs."""

    def told(error: DamagedRecord) -> None:
        if error.key is None or not is_target(error.key) or error.key in targets:
            raise error

    return told


def unless_observation(link_id: str, sequence: int) -> Damaged:
    """For who has to know what was observed under this sequence: raises if a damaged observation may be it."""

    def told(error: DamagedRecord) -> None:
        if error.key is None or error.key == f"{link_id}:{sequence}":
            raise error

    return told


def unless_one_of(urls: Iterable[str], skipped: list[DamagedRecord]) -> Damaged:
    """For who has to know whether these URLs are watched: raises if a damaged link may be one of theirs.

    Args: skipped: gets those that are not.
    """
    asked = frozenset(urls)

    def told(error: DamagedRecord) -> None:
        if error.url is None or error.url in asked:
            raise error
        skipped.append(error)

    return told
