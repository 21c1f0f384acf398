"""The warehouse: the history by week, in files that outlive the store's pruning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.transitions import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedWeek:
    """A week in the warehouse: how many observations its file holds, the file's SHA-256 (hex), and when it was made."""

    week: datetime
    rows: int
    sha256: str
    exported_at: datetime


class Warehouse(Protocol):
    """The history by week, for reports: Parquet files, kept when the store has pruned (docs/reference/warehouse.md)."""

    def write_week(self, week: datetime, observations: Iterable[Observation]) -> ExportedWeek:
        """Write (or replace) one week's file, atomically."""
        ...

    def verify_week(self, exported: ExportedWeek) -> bool:
        """Whether the week's file is there with the exported content."""
        ...

    def read_week(self, week: datetime) -> Iterator[Observation]:
        """The observations of a week's file, in (link, sequence) order; nothing if there is no file."""
        ...

    def write_transitions(self, week: datetime, transitions: Iterable[Transition]) -> None:
        """Write (or replace) one week's transitions, atomically."""
        ...

    def read_transitions(self, week: datetime) -> Iterator[Transition]:
        """A week's transitions in (link, version) order; nothing if there is no file."""
        ...

    def write_notices(self, week: datetime, notices: Iterable[Notice]) -> None:
        """Write (or replace) one week's notices, atomically."""
        ...

    def read_notices(self, week: datetime) -> Iterator[Notice]:
        """A week's notices in transition id order; nothing if there is no file."""
        ...

    def write_links(self, links: Iterable[Link]) -> None:
        """Write (or replace) the registry as it is now: who owns a link and where it stands."""
        ...

    def summarise_week(self, week: datetime) -> bool:
        """Bring a week's aggregates up to date with the files of it and the next; whether that took writing."""
        ...

    def set_aside(self, week: datetime) -> str:
        """Rename a week's damaged file, so that the other weeks can be read; its new name."""
        ...

    def write_views(self) -> None:
        """Write the DuckDB file with the views over the warehouse, for analysts."""
        ...

    def forget_weeks(self, *, before: datetime) -> Sequence[datetime]:
        """Delete the observations of earlier weeks that have aggregates; these stay for good. The weeks deleted now."""
        ...
