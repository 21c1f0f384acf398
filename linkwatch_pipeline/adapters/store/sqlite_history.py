"""Observations and transitions in SQLite (`ports.HistoryStore`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from linkwatch_pipeline.adapters.store.rows import (
    CHAINS,
    EXPORTED_WEEKS,
    JOBS,
    LINKS,
    NOTICES,
    OBSERVATIONS,
    TRANSITIONS,
)
from linkwatch_pipeline.adapters.store.sqlite_database import Database
from linkwatch_pipeline.adapters.store.sqlite_runs import JOB_END, next_allowed_at
from linkwatch_pipeline.adapters.store.sqlite_transactions import Transaction
from linkwatch_pipeline.domain.errors import ConflictingContent, NotFound, StaleWrite
from linkwatch_pipeline.domain.links import in_brief
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.recording import Recorded, RecordPlan, plan_record
from linkwatch_pipeline.domain.runs import HostChain, JobRecord
from linkwatch_pipeline.domain.sequences import check_sequence
from linkwatch_pipeline.domain.timestamps import WEEK, format_utc
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import Damaged, ExportedWeek

# All that an observation can change of its link: naming them keeps the link's indexes out of the commit.
_LINK_STATE = ("state", "state_since", "version", "last_sequence", "broken_streak")


class SqliteHistory:
    """Observations, transitions, and which weeks are in the warehouse."""

    _database: Database

    def record(self, observation: Observation, *, default_confirm: int, now: datetime) -> Recorded:
        check_sequence(observation.sequence)

        with self._database.transaction() as write:
            link = write.get(LINKS, observation.link_id)
            if link is None:
                raise NotFound(f"there is no link {observation.link_id!r}; register it first.")
            job, chain = _job_and_chain(write, observation)
            plan = plan_record(
                observation,
                link=link,
                held_by=write.get(OBSERVATIONS, observation.link_id, observation.sequence),
                job=job,
                chain=chain,
                next_allowed_at=next_allowed_at(write, job.host) if job is not None else None,
                default_confirm=default_confirm,
                now=now,
            )
            _commit(write, plan)
        link = in_brief(plan.link)
        return Recorded(kind=plan.kind, link=link, transition=plan.transition, chain=plan.chain or chain)

    def observations(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        damaged: Damaged | None = None,
    ) -> Iterator[Observation]:
        # Each chunk has to come from an index in (link, sequence) order: the table's own key, or observations_by_run.
        # The unary plus keeps observations_by_time away, which would sort all that is left for every chunk.
        filters = {
            "link_id = ?": link_id,
            "run_id = ?": run_id,
            "+observed_at >= ?": format_utc(since) if since is not None else None,
            "+observed_at < ?": format_utc(until) if until is not None else None,
        }
        used = {condition: value for condition, value in filters.items() if value is not None}
        return self._database.stream(
            OBSERVATIONS, *used, values=tuple(used.values()), order=("link_id", "sequence"), damaged=damaged
        )

    def transitions(self, *, link_id: str | None = None, damaged: Damaged | None = None) -> Iterator[Transition]:
        if link_id is None:
            return self._database.stream(TRANSITIONS, order=("link_id", "version"), damaged=damaged)
        return self._database.stream(TRANSITIONS, "link_id = ?", values=(link_id,), order=("version",), damaged=damaged)

    def mark_exported(self, exported: ExportedWeek) -> None:
        with self._database.transaction() as write:
            if not write.insert_if_absent(EXPORTED_WEEKS, exported):
                write.update(EXPORTED_WEEKS, exported)

    def exported_weeks(self) -> Iterator[ExportedWeek]:
        return self._database.stream(EXPORTED_WEEKS, order=("week",))

    def prune_observations(self, *, week: datetime, expect_rows: int) -> int:
        # observations_by_time
        in_week = "FROM observations WHERE observed_at >= ? AND observed_at < ?"
        values = (format_utc(week), format_utc(week + WEEK))
        with self._database.transaction() as write:
            ((stored,),) = write.rows(f"SELECT count(*) {in_week}", values)
            if stored != expect_rows:
                raise StaleWrite(
                    f"the week of {week:%Y-%m-%d} has {stored} observations, not {expect_rows}; "
                    "nothing was deleted. Export it again."
                )
            return write.execute(f"DELETE {in_week}", values)


def _job_and_chain(write: Transaction, observation: Observation) -> tuple[JobRecord | None, HostChain | None]:
    """The run's items for an observation; both None for a hand check."""
    if observation.run_id is None:
        return None, None
    job = write.get(JOBS, observation.run_id, observation.link_id)
    if job is None:
        raise NotFound(f"run {observation.run_id} has no job for link {observation.link_id!r}.")
    return job, write.get(CHAINS, job.run_id, job.host)


def _commit(write: Transaction, plan: RecordPlan) -> None:
    if plan.observation is not None:
        _append(write, plan.observation)
        write.update(LINKS, plan.link, *_LINK_STATE)
    if plan.transition is not None:
        write.insert(TRANSITIONS, plan.transition)
    if plan.notice is not None:
        write.insert(NOTICES, plan.notice)
    if plan.job is not None:
        write.update(JOBS, plan.job, *JOB_END)
    if plan.chain is not None:
        write.update(CHAINS, plan.chain)


def _append(write: Transaction, observation: Observation) -> None:
    try:
        write.insert(OBSERVATIONS, observation)
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_UNIQUE:
            raise
        # (link, sequence) was looked up before, so it is the job id.
        raise ConflictingContent(
            f"job {observation.job_id!r} is already committed with other content; a new observation needs a job id "
            "and a sequence of its own."
        ) from error
