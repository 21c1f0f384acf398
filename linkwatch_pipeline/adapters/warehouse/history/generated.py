"""A made-up history (`ports.History`): one seed, the same links, runs and looks, whichever way they are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwatch_pipeline.adapters.warehouse.files import connection, fetch_rows
from linkwatch_pipeline.adapters.warehouse.history.answers import KINDS, Answer
from linkwatch_pipeline.adapters.warehouse.history.fates import Fates
from linkwatch_pipeline.adapters.warehouse.history.inventory import Inventory, owners
from linkwatch_pipeline.adapters.warehouse.history.looks import RunLooks, load_looks, microseconds
from linkwatch_pipeline.adapters.warehouse.history.machine import Machine
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.adapters.warehouse.rows import observation_of
from linkwatch_pipeline.adapters.warehouse.schema import COLUMNS
from linkwatch_pipeline.domain.links import Link, Owner
from linkwatch_pipeline.domain.notices import notice_for
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import COUNTED, Run, RunCounts, RunState, retry_run_id, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import PlayedWeek, ScriptedRun

if TYPE_CHECKING:
    import duckdb


class GeneratedHistory:
    """`links` links over the weeks from `first_week`. Weeks are asked for in order, each once.

    Args:
        warehouse: where whole weeks are recorded at once; its folder also holds what does not fit into memory.
        confirm: failing looks that make a link broken.
        inventory: the links, if they are not to be made up.
    """

    def __init__(
        self,
        links: int,
        *,
        seed: int,
        first_week: datetime,
        warehouse: ParquetWarehouse,
        folder: Path,
        confirm: int,
        inventory: Inventory | None = None,
    ) -> None:
        self._inventory = inventory or Inventory(links, seed=seed, active_since=first_week - WEEK / 7)
        markers = [self._inventory.has_marker(number) for number in range(links)]
        self._fates = Fates(self._inventory.host_of, markers, seed=seed)
        self._machine = Machine(links, confirm=confirm)
        self._sequence = np.full(links, -1, dtype=np.int64)
        self._seed, self._warehouse, self._folder = seed, warehouse, folder

    def owners(self) -> Sequence[Owner]:
        """The teams that the links belong to."""
        return owners()

    def links(self) -> Iterator[Link]:
        """The links as they stand after the weeks that were played at once; before the first, as registered."""
        return (self._machine.link(number, link) for number, link in enumerate(self._inventory))

    def next_week(self, week: datetime) -> Iterator[ScriptedRun]:
        """The looks of the week's run and of its retry runs, for somebody who records them one by one."""
        runs = self._runs(week)
        for run in runs:
            with connection(self._folder) as database:
                load_looks(database, self._inventory, [run], seed=self._seed)
                observations = tuple(_observations(database, "incoming"))
            yield ScriptedRun(run=_closed(run), observations=observations)

    def play_week(self, week: datetime) -> PlayedWeek:
        """Record the week straight into the warehouse: looks, transitions and notices as the store would make them."""
        runs = self._runs(week)
        changes: list[tuple[Link, Transition, Observation]] = []

        def load(database: duckdb.DuckDBPyConnection, _scratch: Path) -> int:
            rows = load_looks(database, self._inventory, runs, seed=self._seed)
            for run in runs:
                changes.extend(self._advance(database, run))
            return rows

        exported = self._warehouse.write_loaded(week, load)
        notices = [notice_for(link, change, seen, now=seen.observed_at) for link, change, seen in changes]
        transitions = [change for _, change, _ in changes]
        return PlayedWeek(
            exported=exported,
            runs=tuple(_closed(run) for run in runs),
            transitions=tuple(transitions),
            notices=tuple(notices),
        )

    def _runs(self, week: datetime) -> list[RunLooks]:
        runs: list[RunLooks] = []
        run_id, started_at, parent = weekly_run_id(week), week, None
        for looks in self._fates.next_week():
            self._sequence[looks.link] += 1
            sequences = self._sequence[looks.link]
            runs.append(
                RunLooks(
                    run_id=run_id,
                    intended_at=week,
                    started_at=started_at,
                    retry_of=parent,
                    looks=looks,
                    sequences=sequences,
                )
            )
            run_id, parent, started_at = retry_run_id(run_id) or "", run_id, runs[-1].closed_at
        return runs

    def _advance(
        self, database: duckdb.DuckDBPyConnection, run: RunLooks
    ) -> Iterator[tuple[Link, Transition, Observation]]:
        looks = run.looks
        changing = [int(number) for number in self._machine.changing(looks.link, looks.answer)]
        links = {number: self._inventory.link(number) for number in changing}
        database.execute("CREATE OR REPLACE TEMP TABLE changing (link_id VARCHAR)")
        if links:
            ids = [link.id for link in links.values()]
            database.execute("INSERT INTO changing SELECT unnest(?)", [ids])
        wanted = f"incoming SEMI JOIN changing USING (link_id) WHERE run_id = '{run.run_id}'"
        seen = {each.link_id: each for each in _observations(database, wanted)}
        told = {number: (link, seen[link.id]) for number, link in links.items()}
        at = looks.at + microseconds(run.started_at)
        return self._machine.advance(looks.link, looks.answer, run.sequences, at, told)


def _observations(database: duckdb.DuckDBPyConnection, relation: str) -> Iterator[Observation]:
    rows = fetch_rows(database, relation, COLUMNS, {name: name for name in COLUMNS}, "link_id, sequence")
    return map(observation_of, rows)


def _closed(run: RunLooks) -> Run:
    """The run as it closed, with its totals."""
    by_end: dict[str, int] = {}
    for answer, looks in zip(*np.unique(run.looks.answer, return_counts=True), strict=True):
        outcome = KINDS[Answer(int(answer))].verdict.outcome.value
        by_end[outcome] = by_end.get(outcome, 0) + int(looks)
    expected = int(run.looks.link.size)
    return Run(
        run_id=run.run_id,
        intended_at=run.intended_at,
        started_at=run.started_at,
        state=RunState.CLOSED,
        expected=expected,
        dispatched=expected,
        dispatched_at=run.started_at,
        closed_at=run.closed_at,
        retry_of=run.retry_of,
        totals=RunCounts(expected=expected, by_end={end: by_end[end] for end in COUNTED if end in by_end}),
    )
