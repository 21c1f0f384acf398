"""Observations and transitions in DynamoDB (`ports.HistoryStore`).

Observations alone expire (`expires_at`): DynamoDB deletes them some time after that, and nobody sees them after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from linkwatch_pipeline.adapters.store.dynamodb_chains import chain_and_next_allowed
from linkwatch_pipeline.adapters.store.dynamodb_days import NoticeDays, notice_item, noticed_on
from linkwatch_pipeline.adapters.store.dynamodb_items import (
    EXPIRES_AT,
    LINK_LIST,
    OBSERVATION,
    TRANSITION,
    WEEK_LIST,
    Item,
    chain_key,
    damaged_item,
    decode,
    encode,
    job_key,
    key_of,
    link_key,
    link_of,
    number,
    observation_key,
    text,
    transition_key,
)
from linkwatch_pipeline.adapters.store.dynamodb_journal import Journal, is_marked
from linkwatch_pipeline.adapters.store.dynamodb_parts import LinkParts
from linkwatch_pipeline.adapters.store.dynamodb_table import (
    MOST_IN_GET,
    Check,
    DynamoTable,
    Operation,
    Put,
    chunks,
)
from linkwatch_pipeline.adapters.store.readable import readable
from linkwatch_pipeline.adapters.store.rows import (
    CHAINS,
    EXPORTED_WEEKS,
    JOBS,
    OBSERVATIONS,
    TRANSITIONS,
)
from linkwatch_pipeline.domain.errors import ConflictingContent, NotFound, StaleWrite
from linkwatch_pipeline.domain.links import Link, in_brief
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import KEEP_OBSERVATIONS, Observation
from linkwatch_pipeline.domain.recording import Recorded, RecordPlan, plan_record
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, JobStatus, hand_job_id
from linkwatch_pipeline.domain.sequences import check_sequence
from linkwatch_pipeline.domain.service_changes import JOB_PREFIX
from linkwatch_pipeline.domain.timestamps import WEEK, format_utc
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import Clock, Damaged, ExportedWeek

_AS_CONFIGURED = "config_version = :version AND attribute_not_exists(retired_at) AND attribute_not_exists(pending)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What a record is decided from: the items as they were read, whose `w` its transaction insists on."""

    link_item: Item
    link: Link
    held_by: Observation | None
    job_item: Item | None
    job: JobRecord | None
    chain_item: Item | None
    chain: HostChain | None
    next_allowed_at: datetime | None

    def plan(self, observation: Observation, *, default_confirm: int, now: datetime) -> RecordPlan:
        return plan_record(
            observation,
            link=self.link,
            held_by=self.held_by,
            job=self.job,
            chain=self.chain,
            next_allowed_at=self.next_allowed_at,
            default_confirm=default_confirm,
            now=now,
        )


class DynamoHistory:
    """Observations, transitions, and which weeks are in the warehouse."""

    _table: DynamoTable
    _journal: Journal
    _parts: LinkParts
    _days: NoticeDays
    _clock: Clock

    def record(self, observation: Observation, *, default_confirm: int, now: datetime) -> Recorded:
        check_sequence(observation.sequence)

        def attempt() -> Recorded:
            read = self._read_for(observation)
            plan = read.plan(observation, default_confirm=default_confirm, now=now)
            if plan.notice is not None:
                # A notice says where its link stands and who else uses it: now these have to be read too.
                read = replace(read, link=self._parts.whole(read.link_item))
                plan = read.plan(observation, default_confirm=default_confirm, now=now)
            self._commit(plan, read)
            link = in_brief(plan.link)
            return Recorded(kind=plan.kind, link=link, transition=plan.transition, chain=plan.chain or read.chain)

        return self._table.patience.until_undisturbed(attempt)

    def observations(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        damaged: Damaged | None = None,
    ) -> Iterator[Observation]:
        if run_id is not None:
            for seen in readable(self._items_of_run(run_id, link_id), _observation_of, damaged):
                if (since is None or seen.observed_at >= since) and (until is None or seen.observed_at < until):
                    yield seen
            return
        for one in [link_id] if link_id is not None else self._link_ids():
            yield from readable(self._observation_items(one, since, until), _observation_of, damaged)

    def transitions(self, *, link_id: str | None = None, damaged: Damaged | None = None) -> Iterator[Transition]:
        if link_id is not None:
            yield from readable(self._table.query(f"LINK#{link_id}", prefix=TRANSITION), _transition_of, damaged)
            return
        # Each transition has a notice, and those are listed by day: no link without one has to be asked.
        places = sorted(self._transition_places())
        for chunk in chunks((transition_key(link, version) for link, version in places), MOST_IN_GET):
            items = self._table.get_many(chunk)
            yield from readable((items[key] for key in chunk if key in items), _transition_of, damaged)

    def mark_exported(self, exported: ExportedWeek) -> None:
        key = (WEEK_LIST, format_utc(exported.week))

        def attempt() -> None:
            self._table.put(encode(EXPORTED_WEEKS, exported, key), was=self._table.get(key))

        self._table.patience.until_undisturbed(attempt)

    def exported_weeks(self) -> Iterator[ExportedWeek]:
        return (decode(EXPORTED_WEEKS, item) for item in self._table.query(WEEK_LIST))

    def prune_observations(self, *, week: datetime, expect_rows: int) -> int:
        stored = [
            key_of(item) for link_id in self._link_ids() for item in self._observation_items(link_id, week, week + WEEK)
        ]
        if len(stored) != expect_rows:
            raise StaleWrite(
                f"the week of {week:%Y-%m-%d} has {len(stored)} observations, not {expect_rows}; "
                "nothing was deleted. Export it again."
            )
        self._table.delete_many(stored)
        return len(stored)

    def _read_for(self, observation: Observation) -> _Read:
        """Everything that a record is decided from, in two reads (one for a check by hand)."""
        link_at = link_key(observation.link_id)
        held_at = observation_key(observation.link_id, observation.sequence)
        job_at = job_key(observation.run_id, observation.link_id) if observation.run_id is not None else None
        items = self._table.get_many([link_at, held_at, *([job_at] if job_at is not None else [])])
        link_item = items.get(link_at)
        if link_item is not None and is_marked(link_item):
            link_item = self._journal.settled(link_at)
        if link_item is None:
            raise NotFound(f"there is no link {observation.link_id!r}; register it first.")
        job_item = items.get(job_at) if job_at is not None else None
        if job_at is not None and job_item is None:
            raise NotFound(f"run {observation.run_id} has no job for link {observation.link_id!r}.")
        job = decode(JOBS, job_item) if job_item is not None else None
        place = (job.run_id, job.host) if job is not None else None
        chain_item, allowed_at = chain_and_next_allowed(self._table, *place) if place is not None else (None, None)
        return _Read(
            link_item=link_item,
            link=link_of(link_item),
            held_by=decode(OBSERVATIONS, items[held_at]) if held_at in items else None,
            job_item=job_item,
            job=job,
            chain_item=chain_item,
            chain=decode(CHAINS, chain_item) if chain_item is not None else None,
            next_allowed_at=allowed_at,
        )

    def _commit(self, plan: RecordPlan, read: _Read) -> None:
        """One transaction: every item that the plan changes, if all that it was decided from is still so."""
        operations: list[Operation] = []
        if plan.observation is not None:
            _check_hand_job_id(plan.observation)
            operations += [Put(observation_item(plan.observation), None), self._link_operation(plan, read)]
        if plan.notice is not None and plan.transition is not None:
            self._days.expect(plan.notice)
            operations += _telling(plan.transition, plan.notice)
        if plan.job is not None:
            operations.append(Put(encode(JOBS, plan.job, job_key(plan.job.run_id, plan.job.link_id)), read.job_item))
        if plan.chain is not None:
            key = chain_key(plan.chain.run_id, plan.chain.host)
            operations.append(Put(encode(CHAINS, plan.chain, key), read.chain_item))
        if operations:
            self._table.transact(operations)

    def _link_operation(self, plan: RecordPlan, read: _Read) -> Operation:
        """The link's new state; an older observation only asks whether the link is still configured as it was."""
        if plan.link is read.link:
            key = link_key(plan.link.id)
            return Check(key, _AS_CONFIGURED, {":version": number(plan.link.config_version)})
        return Put(self._parts.item_with_state(plan.link, read.link_item), read.link_item)

    def _observation_items(self, link_id: str, since: datetime | None, until: datetime | None) -> Iterator[Item]:
        # One whose end cannot be read is damaged, and not over.
        condition = "(NOT attribute_type(expires_at, :number) OR expires_at > :now)"
        values = {":now": number(int(self._clock.now().timestamp())), ":number": text("N")}
        if since is not None:
            condition, values = f"{condition} AND observed_at >= :since", {**values, ":since": text(format_utc(since))}
        if until is not None:
            condition, values = f"{condition} AND observed_at < :until", {**values, ":until": text(format_utc(until))}
        filters: dict[str, Any] = {"FilterExpression": condition, "ExpressionAttributeValues": values}
        return self._table.query(f"LINK#{link_id}", prefix=OBSERVATION, **filters)

    def _items_of_run(self, run_id: str, link_id: str | None) -> Iterator[Item]:
        """The items of observations, in link order, as the run's jobs stand."""
        pk, sk = job_key(run_id, link_id or "")
        jobs = (decode(JOBS, item) for item in self._table.query(pk, prefix=sk))
        done = (job for job in jobs if job.status is JobStatus.DONE and link_id in (None, job.link_id))
        now = self._clock.now().timestamp()
        for chunk in chunks((observation_key(job.link_id, job.sequence) for job in done), MOST_IN_GET):
            items = self._table.get_many(chunk)
            yield from (items[key] for key in chunk if key in items and not _is_over(items[key], now))

    def _link_ids(self) -> Iterator[str]:
        return (entry["sk"]["S"] for entry in self._table.query(LINK_LIST))

    def _transition_places(self) -> Iterator[tuple[str, int]]:
        for day in self._days.all():
            for notice in self._days.items(day):
                link_id, _, version = notice["sk"]["S"].rpartition(":")
                yield link_id, int(version)


def observation_item(observation: Observation, *, kept_from: datetime | None = None) -> Item:
    """Args: kept_from: when its 90 days begin, if that is later than when it was observed."""
    key = observation_key(observation.link_id, observation.sequence)
    end = max(kept_from or observation.observed_at, observation.observed_at) + KEEP_OBSERVATIONS
    return encode(OBSERVATIONS, observation, key, **{EXPIRES_AT: number(int(end.timestamp()))})


def _observation_of(item: Item) -> Observation:
    if _end_of(item) is None:
        raise damaged_item(item, f"{EXPIRES_AT} is not a whole number")
    return decode(OBSERVATIONS, item)


def _transition_of(item: Item) -> Transition:
    return decode(TRANSITIONS, item)


def _is_over(item: Item, now: float) -> bool:
    """Whether an observation has expired. Of one that cannot be read nobody knows."""
    end = _end_of(item)
    return end is not None and end <= now


def _end_of(item: Item) -> int | None:
    """When an observation expires, in seconds; None if that cannot be read."""
    said = str(item.get(EXPIRES_AT, {}).get("N", ""))
    return int(said) if said.isdecimal() else None


def _telling(transition: Transition, notice: Notice) -> list[Operation]:
    """A transition and its notice, neither of which may be there."""
    change = encode(
        TRANSITIONS, transition, transition_key(transition.link_id, transition.version), **noticed_on(notice)
    )
    return [Put(change, None), Put(notice_item(notice), None)]


def _check_hand_job_id(observation: Observation) -> None:
    """A job of a run is unique by its own item. One by hand is unique because its id says its sequence and link.

    One that tells of a service is looked for by its teller first; two tellers at once want the same sequence.
    """
    if observation.job_id.startswith(JOB_PREFIX):
        return
    expected = hand_job_id(observation.sequence, observation.link_id)
    if observation.run_id is None and observation.job_id != expected:
        raise ConflictingContent(
            f"job {observation.job_id!r} cannot be sequence {observation.sequence} of link {observation.link_id!r}; "
            f"a check by hand has the job id {expected!r}."
        )
