"""A week's observations into the warehouse, and only then, long after, out of the store (SPEC 3, retention).

A week is what was observed from its Monday 09:00 UTC until the next. No row that a file holds is ever lost: an export
unites the file with the store, which may have forgotten the week already.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from linkwatch_pipeline.domain.errors import DamagedRecord, StaleWrite, StoreUnusable
from linkwatch_pipeline.domain.observations import KEEP_OBSERVATIONS, Observation
from linkwatch_pipeline.domain.report import WeekExport
from linkwatch_pipeline.domain.timestamps import WEEK, week_key, week_start
from linkwatch_pipeline.ports import Clock, Damaged, Store, Warehouse
from linkwatch_pipeline.use_cases.damage import Damage

KEEP_RUNS = timedelta(days=400)
KEEP_FILES = timedelta(weeks=260)  # of observations in the warehouse; aggregates, transitions and notices stay


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedWeek:
    """A week that left the store: how many observations were deleted there, all of them in the warehouse."""

    week: datetime
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """What was forgotten; `kept` names the old weeks that had to stay, with the reason.

    `files` are the weeks whose observations left the warehouse too, after years; their aggregates stay.
    """

    weeks: tuple[PrunedWeek, ...]
    kept: tuple[tuple[datetime, str], ...]
    runs: int
    files: tuple[datetime, ...] = ()


def export_week(
    store: Store, warehouse: Warehouse, week: datetime, *, clock: Clock, damaged: Damaged | None = None
) -> WeekExport:
    """Bring a week's file up to date. Repeating it changes nothing.

    Args: damaged: as in `ports.damaged`, of observations. A file that lacks some is not marked as the week's: it is
        written anew each time until they are mended, or gone.
    Raises: StoreUnusable when the file lost rows that the store no longer holds either; nothing is written then.
    """
    week, left_out = week_start(week), list[DamagedRecord]()

    def leave_out(error: DamagedRecord) -> None:
        if damaged is None:
            raise error
        left_out.append(error)
        damaged(error)

    def stored() -> Iterator[Observation]:
        return _stored(store, week, damaged=leave_out)

    known = next((exported for exported in store.exported_weeks() if exported.week == week), None)
    intact = known is not None and warehouse.verify_week(known)
    if known is not None and intact and _count(stored()) in (0, known.rows) and not left_out:
        return WeekExport(week=week, rows=known.rows, written=False)
    from_file = is_readable(warehouse, week)
    rows = _count(_united(stored(), warehouse, week, from_file=from_file))
    if known is not None and rows < known.rows:
        raise StoreUnusable(
            f"the warehouse file of week {week_key(week)} held {known.rows} observations; only {rows} are left in it "
            f"and in the store. Restore the file from a backup. {left_out[0] if left_out else ''}".rstrip()
        )
    if rows == 0 or (known is not None and intact and rows == known.rows):
        return WeekExport(week=week, rows=rows, written=False)
    exported = warehouse.write_week(week, _united(stored(), warehouse, week, from_file=from_file))
    if not left_out:
        store.mark_exported(replace(exported, exported_at=clock.now()))
    return WeekExport(week=week, rows=exported.rows, written=True)


def prune_history(
    store: Store,
    warehouse: Warehouse,
    *,
    clock: Clock,
    keep: timedelta = KEEP_OBSERVATIONS,
    keep_runs: timedelta = KEEP_RUNS,
    keep_files: timedelta = KEEP_FILES,
) -> PruneReport:
    """Forget observations of weeks that ended more than `keep` ago and are safe in the warehouse, and runs older than
    `keep_runs`. A week that cannot be exported, verified or deleted stays, and the report says why.

    The warehouse forgets the observations of weeks older than `keep_files` that have aggregates.
    """
    now = clock.now()
    pruned: list[PrunedWeek] = []
    kept: list[tuple[datetime, str]] = []
    for week in _stored_weeks(store, ended_by=now - keep):
        try:
            pruned.append(_prune_week(store, warehouse, week, clock=clock))
        except (StoreUnusable, StaleWrite) as problem:
            kept.append((week, str(problem)))
    runs = store.prune_runs(started_before=now - keep_runs)
    files = tuple(warehouse.forget_weeks(before=week_start(now - keep_files)))
    return PruneReport(weeks=tuple(pruned), kept=tuple(kept), runs=runs, files=files)


def _prune_week(store: Store, warehouse: Warehouse, week: datetime, *, clock: Clock) -> PrunedWeek:
    rows = _count(_stored(store, week))
    export_week(store, warehouse, week, clock=clock)
    # What leaves the store is looked at where it will live from now on: each row, not the file's name alone.
    if not _holds_all(warehouse.read_week(week), _stored(store, week)):
        raise StoreUnusable(f"the warehouse file of week {week_key(week)} does not hold all that the store holds")
    return PrunedWeek(week=week, rows=store.prune_observations(week=week, expect_rows=rows))


def _stored(store: Store, week: datetime, *, damaged: Damaged | None = None) -> Iterator[Observation]:
    return store.observations(since=week, until=week + WEEK, damaged=damaged)


def _stored_weeks(store: Store, *, ended_by: datetime) -> list[datetime]:
    """The weeks with observations in the store that ended by then, in order. A damaged one is no reason to look."""
    old = store.observations(until=week_start(ended_by), damaged=Damage())
    return sorted({week_start(observation.observed_at) for observation in old})


def _united(
    stored: Iterator[Observation], warehouse: Warehouse, week: datetime, *, from_file: bool
) -> Iterator[Observation]:
    """A week's observations from the store and its file, each once, in (link, sequence) order."""
    sources = [stored, *([warehouse.read_week(week)] if from_file else [])]
    for _, same in groupby(heapq.merge(*sources, key=_place), key=_place):
        yield next(same)  # the store's, if both have it: merge keeps the order of its sources


def _holds_all(held: Iterator[Observation], wanted: Iterable[Observation]) -> bool:
    """Whether each wanted observation is among the held ones; both in (link, sequence) order."""
    return all(any(observation == candidate for candidate in held) for observation in wanted)


def _place(observation: Observation) -> tuple[str, int]:
    return observation.link_id, observation.sequence


def is_readable(warehouse: Warehouse, week: datetime) -> bool:
    """Whether a week's file can be read to its end; a week without one can."""
    try:
        _count(warehouse.read_week(week))
    except StoreUnusable:
        return False
    return True


def _count(observations: Iterable[Observation]) -> int:
    return sum(1 for _ in observations)
