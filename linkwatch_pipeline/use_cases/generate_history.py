"""Makes up the history of a handbook in a new home: for notebooks, measurements and pictures.

A small one is recorded look by look in the store, as real runs are. A large one goes week by week straight into the
warehouse, with the same transitions and notices; the store then has the links, their states and the runs, no looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import Ruling, RulingKind, Run, RunState
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.domain.transitions import escaped_id
from linkwatch_pipeline.ports import Clock, History, Reports, Store, Warehouse
from linkwatch_pipeline.use_cases.close_run import close_if_over
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline.use_cases.fill_warehouse import fill_warehouse

MOST_LINKS, MOST_WEEKS = 2_000_000, 520
IN_STORE_UP_TO = 60_000  # looks; more go straight into the warehouse
_TOLD_AFTER = timedelta(minutes=2)
_AT_ONCE = 500
_TELLER = "generate-history"

T = TypeVar("T")
Grouped = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeHistory:
    """What was made; `in_store` is whether the looks went through the store."""

    weeks: tuple[datetime, ...]
    links: int
    observations: int
    transitions: int
    in_store: bool


def check_size(links: int, weeks: int, seed: int = 0) -> None:
    """Raise InvalidInput unless a history of that size can be made."""
    if seed < 0:
        raise InvalidInput("seed", f"{seed} is below 0", "Give a whole number from 0 on.")
    for field, value, most in (("links", links, MOST_LINKS), ("weeks", weeks, MOST_WEEKS)):
        if not 1 <= value <= most:
            raise InvalidInput(field, f"{value} is not a number of {field}", f"Give 1 to {most}.")


def generate_history(
    store: Store,
    warehouse: Warehouse,
    reports: Reports,
    history: History,
    weeks: Iterable[datetime],
    *,
    in_store: bool,
    default_confirm: int,
    clock: Clock,
    grouped: Grouped,
) -> MadeHistory:
    """Play a history's weeks in a home that has no links yet.

    Args: grouped: lets the store commit many small writes together.
    Raises: ConflictingContent if the home has links.
    """
    if next(store.links(), None) is not None:
        raise ConflictingContent("this home has links already; name a new folder with --home.")
    weeks = tuple(weeks)
    if in_store:
        store.save_registry(owners=history.owners(), links=[(link, None) for link in history.links()])
        observations = sum(_record_week(store, history, week, default_confirm, grouped) for week in weeks)
    else:
        store.save_registry(owners=history.owners())
        observations = sum(_play_week(store, warehouse, history, week) for week in weeks)
        store.save_registry(links=[(link, None) for link in history.links()])
    links = sum(1 for _ in store.links())
    fill_warehouse(store, warehouse, reports, weeks[-1], clock=clock)
    transitions = sum(1 for week in weeks for _ in warehouse.read_transitions(week))
    return MadeHistory(weeks=weeks, links=links, observations=observations, transitions=transitions, in_store=in_store)


def _record_week(store: Store, history: History, week: datetime, default_confirm: int, grouped: Grouped) -> int:
    """Play a week's runs in the store: dispatched, recorded and closed as real ones; how many looks."""
    count = 0
    for scripted in history.next_week(week):
        planned = scripted.run
        fresh = Run(run_id=planned.run_id, intended_at=week, started_at=planned.started_at, retry_of=planned.retry_of)
        with grouped():
            run = dispatch_run(store, store.create_run(fresh), now=planned.started_at)
        for some in _some_at_once(scripted.observations):
            with grouped():
                for seen in some:
                    store.record(seen, default_confirm=default_confirm, now=seen.observed_at)
        with grouped():
            closed_at = planned.closed_at or planned.started_at
            close_if_over(store, run, now=closed_at)
            _release(store, run, closed_at)
            for notice in list(store.notices(run_id=run.run_id)):
                _tell(store, notice)
        count += len(scripted.observations)
    return count


def _release(store: Store, run: Run, at: datetime) -> None:
    """A made-up week is never suspect: its notices were told."""
    store.rule_on_run(run.run_id, Ruling(kind=RulingKind.RELEASED, at=at), replaces=None)


def _tell(store: Store, notice: Notice) -> None:
    store.update_notice(replace(notice, release_at=notice.created_at), replaces=notice)
    claimed = store.claim_notice(notice.transition_id, by=_TELLER, now=notice.created_at)
    if claimed is not None:
        store.save_notice(told(claimed, store), claimed_by=_TELLER)


def told(notice: Notice, store: Store) -> Notice:
    """The notice as it stands when its mail was accepted."""
    owner = store.get_owner(notice.owner) if notice.owner is not None else None
    return replace(
        notice,
        status=NoticeStatus.SENT,
        attempts=1,
        claimed_by=None,
        claim_until=None,
        recipient=owner.address if owner is not None else None,
        provider_id=f"made-up-{escaped_id(notice.transition_id)}",
        mail_id=notice.transition_id,
        release_at=notice.created_at,
        sent_at=notice.created_at + _TOLD_AFTER,
    )


def _play_week(store: Store, warehouse: Warehouse, history: History, week: datetime) -> int:
    """Play a week in the warehouse and leave its runs in the store; how many looks."""
    played = history.play_week(week)
    warehouse.write_transitions(week, played.transitions)
    warehouse.write_notices(week, [told(notice, store) for notice in played.notices])
    for run in played.runs:
        store.create_run(replace(run, state=RunState.DISPATCHING, expected=None, closed_at=None, totals=None))
        store.finish_dispatch(run.run_id, expected=run.expected or 0, at=run.started_at)
        if run.totals is not None and run.closed_at is not None:
            store.close_run(run.run_id, totals=run.totals, at=run.closed_at)
            _release(store, run, run.closed_at)
    store.mark_exported(played.exported)
    return played.exported.rows


def _some_at_once(rows: Iterable[T]) -> Iterator[list[T]]:
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def weeks_through(last: datetime, count: int) -> list[datetime]:
    """`count` weeks that end with `last`."""
    return [last - (count - 1 - number) * WEEK for number in range(count)]
