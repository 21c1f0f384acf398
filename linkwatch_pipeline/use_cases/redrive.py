"""Redrive: look again at a link whose job was given up, under a new job in a retry run (docs/decisions/0014).

A terminal job never reopens. The new job has a new id and sequence and names the first one (`retry_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from linkwatch_pipeline.domain.allowances import host_of
from linkwatch_pipeline.domain.errors import LinkwatchError
from linkwatch_pipeline.domain.links import AllocationSlot
from linkwatch_pipeline.domain.runs import (
    RETRY_WINDOW,
    CheckJob,
    JobRecord,
    JobStatus,
    Run,
    retry_run_id,
    split_job_id,
    weekly_part,
)
from linkwatch_pipeline.domain.sequences import has_next_sequence
from linkwatch_pipeline.ports import Queue, Store
from linkwatch_pipeline.use_cases.dead_letters import redriven_as
from linkwatch_pipeline.use_cases.dispatch import Member, dispatch_host, dispatch_run
from linkwatch_pipeline.use_cases.observe_week import week_runs
from linkwatch_pipeline.use_cases.queue_letters import why_in_vain


class CannotRedrive(LinkwatchError):
    """A letter that cannot be redriven, in words that go on after its job id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """The new jobs, in (week, host, link) order, and why other letters could not be redriven, by job id.

    `sent_again` are checks by hand: they have no job that ended, so their own message is sent once more.
    """

    jobs: Sequence[JobRecord]
    refused: Mapping[str, str]
    sent_again: Sequence[CheckJob] = ()


def redrive(store: Store, job_ids: Iterable[str], *, now: datetime, queue: Queue | None = None) -> Redriven:
    """Make a new job for each abandoned one, in a new retry run of its week. Whoever works on runs does them.

    Args: queue: where letters lie that outlive their process; the redriven ones are taken out.
    """
    ids = list(dict.fromkeys(job_ids))
    sent_again, in_vain = _send_again(store, queue, ids)
    seen_to = {letter.job_id for letter in sent_again} | in_vain.keys()
    letters, refused = _redrivable(store, [each for each in ids if each not in seen_to])
    refused |= in_vain
    jobs: list[JobRecord] = []
    for week, of_week in groupby(sorted(letters, key=_place), key=lambda job: weekly_part(job.run_id)):
        chosen = list(of_week)
        try:
            run = _begin_retry_run(store, week, now=now)
        except CannotRedrive as why:
            refused |= {job.job_id: str(why) for job in chosen}
            continue
        _dispatch(store, run, chosen, now=now)
        for letter in chosen:
            again = store.get_job(run.run_id, letter.link_id)
            if again is None:
                refused[letter.job_id] = (
                    "was not taken into the retry run, which another redrive began; try again later"
                )
                continue
            jobs.append(again)
            if queue is not None:
                queue.remove_dead_letter(letter.job_id)
    return Redriven(jobs=jobs, refused=refused, sent_again=sent_again)


def _send_again(store: Store, queue: Queue | None, job_ids: Sequence[str]) -> tuple[list[CheckJob], dict[str, str]]:
    """The checks by hand among these that were sent, and why others were not, by job id.

    A crash in between leaves both the message and its letter, which is harmless.
    """
    if queue is None or all(split_job_id(job_id)[0] is not None for job_id in job_ids):
        return [], {}
    sent: list[CheckJob] = []
    in_vain: dict[str, str] = {}
    for letter in queue.dead_letters():
        if not letter.is_by_hand or letter.job_id not in job_ids:
            continue
        why = why_in_vain(store, letter)
        if why is not None:
            in_vain[letter.job_id] = f"would not be checked: {why}; --discard throws the letter away"
            continue
        queue.send([letter])
        queue.remove_dead_letter(letter.job_id)
        sent.append(letter)
    return sent, in_vain


def _place(job: JobRecord) -> tuple[str, str, str]:
    return weekly_part(job.run_id), host_of(job.host), job.link_id


def _redrivable(store: Store, job_ids: Iterable[str]) -> tuple[list[JobRecord], dict[str, str]]:
    """The abandoned jobs, and why the others cannot be redriven."""
    jobs: list[JobRecord] = []
    refused: dict[str, str] = {}
    for job_id in job_ids:
        try:
            jobs.append(_abandoned_job(store, job_id))
        except CannotRedrive as why:
            refused[job_id] = str(why)
    return jobs, refused


def _abandoned_job(store: Store, job_id: str) -> JobRecord:
    run_id, link_id = split_job_id(job_id)
    job = store.get_job(run_id, link_id) if run_id is not None else None
    if job is None:
        raise CannotRedrive("is no job of a run; 'linkwatch dead-letters' lists them, --discard throws a letter away")
    if job.status is not JobStatus.ABANDONED:
        raise CannotRedrive(f"was not given up: it is {job.status.value}")
    again = redriven_as(store, job)
    if again is not None:
        raise CannotRedrive(f"was redriven already, as {again.job_id}")
    link = store.get_link(job.link_id)
    if link is None or link.retired_at is not None:
        raise CannotRedrive("belongs to a link that is retired")
    if link.config_version != job.config_version or link.host != host_of(job.host):
        raise CannotRedrive("belongs to a link that was changed since; the next weekly run looks at it as it is now")
    if not has_next_sequence(link):
        raise CannotRedrive("belongs to a link that has no sequence left; retire it, register its URL under another id")
    return job


def _begin_retry_run(store: Store, week: str, *, now: datetime) -> Run:
    """The week's next retry run. Its parent is over and left nobody behind, so it has no members of its own."""
    weekly = store.get_run(week)
    if weekly is None:
        raise CannotRedrive("belongs to a run that is forgotten")
    last = week_runs(store, weekly)[-1]
    if not last.state.is_over:
        raise CannotRedrive(f"has to wait until run {last.run_id} is closed")
    run_id, by_hand = retry_run_id(last.run_id), "check it by hand ('linkwatch check LINK_ID')"
    if run_id is None:
        raise CannotRedrive(f"belongs to a week that had all its retry runs; {by_hand}")
    if now > last.intended_at + RETRY_WINDOW:
        raise CannotRedrive(f"belongs to a week that began more than 24 hours ago; {by_hand}")
    return store.create_run(Run(run_id=run_id, intended_at=last.intended_at, started_at=now, retry_of=last.run_id))


def _dispatch(store: Store, run: Run, letters: Iterable[JobRecord], *, now: datetime) -> None:
    # In one chain a host, whatever its allowance: they are few.
    for host, of_host in groupby(letters, key=lambda job: host_of(job.host)):
        members = [
            Member(link=link, retry_of=job.retry_of or job.job_id)
            for job in of_host
            if (link := store.get_link(job.link_id)) is not None
        ]
        dispatch_host(store, run, AllocationSlot.RETRY, members, now, host=host)
    dispatch_run(store, run, now=now)
