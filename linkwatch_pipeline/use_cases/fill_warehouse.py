"""Brings the whole warehouse up to date for a report: the week, lost or damaged weeks before it, and all beside them.

What the store still holds is written again; what nobody holds any more is named, and the rest goes on without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from linkwatch_pipeline.domain.errors import StoreUnusable
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.report import WeekExport
from linkwatch_pipeline.domain.timestamps import WEEK, week_start
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import Clock, Damaged, ExportedWeek, Reports, Store, Warehouse
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.export_week import KEEP_FILES, export_week, is_readable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What became of the week asked for, and a sentence about each earlier week that is lost or record left out."""

    exported: WeekExport
    problems: tuple[str, ...]


def fill_warehouse(store: Store, warehouse: Warehouse, reports: Reports, week: datetime, *, clock: Clock) -> Filled:
    """Bring the warehouse up to date through a week. Repeating it changes no week that is whole.

    Raises: StoreUnusable when the week itself lost rows that the store no longer holds either.
    """
    damage = Damage()
    warehouse.write_links(store.links(damaged=damage))
    exported = export_week(store, warehouse, week, clock=clock, damaged=damage)
    problems = tuple(_mend_earlier(store, warehouse, reports.weeks(), week, clock=clock, damaged=damage))
    _export_changes(store, warehouse, through=week, damaged=damage)
    weeks = [each for each in reports.weeks() if each <= week + WEEK]
    for each in sorted({*weeks, *(known - WEEK for known in weeks)}):
        if each <= week:
            warehouse.summarise_week(each)
    warehouse.write_views()
    return Filled(exported=exported, problems=(*problems, *map(str, damage.records)))


def _mend_earlier(
    store: Store, warehouse: Warehouse, files: Sequence[datetime], week: datetime, *, clock: Clock, damaged: Damaged
) -> Iterator[str]:
    """Export the earlier weeks that have no file, a damaged one, or one that lacks what the store could not read.

    Returns: a sentence about each that cannot be exported.

    A damaged file is renamed then, so that the others can be read.
    """
    marks = {mark.week: mark for mark in store.exported_weeks()}
    runs = {week_start(run.intended_at) for run in store.runs(damaged=damaged)}
    oldest = week_start(clock.now() - KEEP_FILES)
    for earlier in sorted(runs.union(marks)):
        if not oldest <= earlier < week or _is_whole(warehouse, marks.get(earlier), has_file=earlier in files):
            continue
        try:
            export_week(store, warehouse, earlier, clock=clock, damaged=damaged)
        except StoreUnusable as problem:
            is_damaged = earlier in files and not is_readable(warehouse, earlier)
            yield f"{problem} The damaged file is now {warehouse.set_aside(earlier)}." if is_damaged else str(problem)


def _is_whole(warehouse: Warehouse, mark: ExportedWeek | None, *, has_file: bool) -> bool:
    return has_file and mark is not None and warehouse.verify_week(mark)


def _export_changes(store: Store, warehouse: Warehouse, *, through: datetime, damaged: Damaged) -> None:
    """Write the weeks' transitions and notices where they are not as in the store, which holds them for good."""
    transitions = _by_week(store.transitions(damaged=damaged), lambda transition: transition.at)
    notices = _by_week(store.notices(damaged=damaged), lambda notice: notice.observed_at)
    for week, changes in transitions.items():
        if week <= through and (united := _united(changes, partial(warehouse.read_transitions, week), _transition_id)):
            warehouse.write_transitions(week, united)
    for week, told in notices.items():
        if week <= through and (all_told := _united(told, partial(warehouse.read_notices, week), _notice_id)):
            warehouse.write_notices(week, all_told)


def _united(stored: Sequence[T], read: Callable[[], Iterator[T]], key: Callable[[T], str]) -> list[T]:
    """What the store has and what the file has beside it; nothing if the file has it all."""
    try:
        held = {key(row): row for row in read()}
    except StoreUnusable:
        held = {}
    united = {**held, **{key(row): row for row in stored}}
    return list(united.values()) if united != held else []


def _by_week(rows: Iterable[T], at: Callable[[T], datetime]) -> dict[datetime, list[T]]:
    grouped: dict[datetime, list[T]] = defaultdict(list)
    for row in rows:
        grouped[week_start(at(row))].append(row)
    return grouped


def _transition_id(transition: Transition) -> str:
    return transition.id


def _notice_id(notice: Notice) -> str:
    return notice.transition_id
