"""The store's role as history: what was observed, what changed, and which weeks the warehouse has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.recording import Recorded
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports.damaged import Damaged
from linkwatch_pipeline.ports.warehouse import ExportedWeek


class HistoryStore(Protocol):
    """Observations and transitions."""

    def record(self, observation: Observation, *, default_confirm: int, now: datetime) -> Recorded:
        """Commit one observation and all that follows from it (`domain.recording.plan_record`), or nothing.

        Raises: ConflictingContent (reused id or sequence), NotFound (no such link; a job id of a run without that job),
            InvalidInput (a sequence beyond `domain.sequences.MAX_SEQUENCE`).
        """
        ...

    def observations(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        damaged: Damaged | None = None,
    ) -> Iterator[Observation]:
        """Observations in (link, sequence) order; `since` <= observed_at < `until`.

        Args: damaged: as in `ports.damaged`; its key is `link:sequence`.
        """
        ...

    def transitions(self, *, link_id: str | None = None, damaged: Damaged | None = None) -> Iterator[Transition]:
        """Transitions in (link, version) order.

        Args: damaged: as in `ports.damaged`; its key is the transition's id.
        """
        ...

    def mark_exported(self, exported: ExportedWeek) -> None:
        """Remember that a week is in the warehouse, replacing an earlier export of it."""
        ...

    def exported_weeks(self) -> Iterator[ExportedWeek]:
        """In week order."""
        ...

    def prune_observations(self, *, week: datetime, expect_rows: int) -> int:
        """Delete a week's observations if exactly `expect_rows` are stored (else StaleWrite); how many."""
        ...
