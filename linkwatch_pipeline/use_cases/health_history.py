"""What went wrong with past weeks: those that nobody ran, and those that ended late. Kept as long as runs are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from linkwatch_pipeline.domain.runs import RunState, is_late, is_missed_too_early, is_retry
from linkwatch_pipeline.ports import Damaged, Store


class Mishap(StrEnum):
    """`missed`: nobody ran the week. `late`: its run was unfinished at 09:30."""

    MISSED = "missed"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTrouble:
    """One week's trouble; `noticed_at` is when a missed week was recorded or a late run closed, None if it is open."""

    run_id: str
    what: Mishap
    intended_at: datetime
    noticed_at: datetime | None


def past_trouble(store: Store, *, now: datetime, damaged: Damaged | None = None) -> Iterator[PastTrouble]:
    """In time order. Args: damaged: as in `ports.damaged`, of runs."""
    for run in store.runs(damaged=damaged):
        if is_missed_too_early(run, now):
            continue
        missed = run.state is RunState.MISSED
        if missed or (not is_retry(run.run_id) and is_late(run, now)):
            what = Mishap.MISSED if missed else Mishap.LATE
            yield PastTrouble(run_id=run.run_id, what=what, intended_at=run.intended_at, noticed_at=run.closed_at)
