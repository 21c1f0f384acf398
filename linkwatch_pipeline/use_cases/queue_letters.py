"""What lies among the dead letters of a shared queue, by what can be done about it (docs/decisions/0046)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord, InvalidInput
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus, split_job_id
from linkwatch_pipeline.domain.sequences import check_given_sequence
from linkwatch_pipeline.ports import Queue, Store, StrayLetter
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.dead_letters import why_stray
from linkwatch_pipeline.use_cases.hand_check import committed_by_hand, refuse_promised_sequence


@dataclass(slots=True, kw_only=True)
class QueueLetters:
    """Letters beside those of jobs that were given up, which the store knows; the oldest first.

    Args:
        by_hand: checks by hand, whose message can be sent again.
        waiting: jobs that are pending until the next tick sees their letter, ends them, and sends what follows.
        strays: no redrive can help them, though they sound the queue's alarm.
    """

    by_hand: list[CheckJob] = field(default_factory=list)
    waiting: list[JobRecord] = field(default_factory=list)
    strays: list[StrayLetter] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """Ids of letters that were thrown away, that are not there, and that the next tick goes by."""

    found: list[str]
    missing: list[str]
    needed: list[str]


def queue_letters(store: Store, queue: Queue | None) -> QueueLetters:
    """Read the dead letters and sort them; one of a damaged record is left out, and logged."""
    sorted_ones, damage = QueueLetters(), Damage()
    if queue is None:
        return sorted_ones
    sorted_ones.strays += queue.unreadable_letters()
    for letter in queue.dead_letters():
        try:
            _sort_in(store, letter, sorted_ones)
        except DamagedRecord as error:
            damage(error)
    return sorted_ones


def _sort_in(store: Store, letter: CheckJob, into: QueueLetters) -> None:
    if letter.is_by_hand:
        why = why_in_vain(store, letter)
        if why is None:
            into.by_hand.append(letter)
            return
    else:
        job = store.get_job(letter.run_id, letter.link_id)
        if job is not None and job.status is JobStatus.ABANDONED:
            return
        if job is not None and _is_awaited(store, job):
            into.waiting.append(job)
            return
        why = why_stray(job)
    into.strays.append(StrayLetter(letter_id=letter.job_id, problem=why, beginning=""))


def why_in_vain(store: Store, letter: CheckJob) -> str | None:
    """Why a check by hand would not be made if its message were sent again; None if it would be."""
    link = store.get_link(letter.link_id)
    if link is None:
        return "its link is not known here"
    if link.retired_at is not None:
        return "its link is retired"
    if link.config_version != letter.config_version:
        return "its link was changed since it was sent"
    try:
        check_given_sequence(letter.sequence, link)
        if committed_by_hand(store, link, letter.sequence) is not None:
            return "its check was made"
        refuse_promised_sequence(store, link, letter.sequence)
    except InvalidInput as refused:
        return f"its sequence {refused.problem}"
    except ConflictingContent:
        return "its sequence belongs to another job"
    return None


def _is_awaited(store: Store, job: JobRecord) -> bool:
    """Whether a tick is going to end the job because of its letter: it goes by letters while a run is open."""
    run = store.get_run(job.run_id) if job.status is JobStatus.PENDING else None
    return run is not None and not run.state.is_over


def discard_letters(store: Store, queue: Queue, letter_ids: Iterable[str]) -> Discarded:
    """Throw letters away, whatever they are, and leave their jobs as they are; but not those that a tick goes by.

    Without its letter a pending job would not end now: it would be sent again, and fail five times more.
    """
    done = Discarded(found=[], missing=[], needed=[])
    for letter_id in dict.fromkeys(letter_ids):
        run_id, link_id = split_job_id(letter_id)
        job = store.get_job(run_id, link_id) if run_id else None
        if job is not None and _is_awaited(store, job):
            done.needed.append(letter_id)
        else:
            (done.found if queue.remove_dead_letter(letter_id) else done.missing).append(letter_id)
    return done
