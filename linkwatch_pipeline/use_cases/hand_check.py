"""One observation now, by hand: admitted, fetched and recorded like any other; no run counts it (ARCHITECTURE 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.errors import ConflictingContent, LinkwatchError, NotFound
from linkwatch_pipeline.domain.fetching import HopDeferred
from linkwatch_pipeline.domain.hosts import Deferred
from linkwatch_pipeline.domain.links import Link, check_link_id
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.runs import JobStatus, hand_job_id
from linkwatch_pipeline.domain.sequences import check_given_sequence, next_sequence
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.check import fetch_within_life, no_answer, observe
from linkwatch_pipeline.use_cases.damage import unless_observation
from linkwatch_pipeline.use_cases.visit import CheckParts, Visit


class HostBusy(LinkwatchError):
    """The host may not be visited before `until`; nothing was fetched and nothing written."""

    def __init__(self, host: str, until: datetime) -> None:
        super().__init__(
            f"host {host} may not be visited before {format_seconds(until)}: somebody is visiting it, or it "
            "asked for a pause. Nothing was fetched; try again then."
        )
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class HandCheck:
    """What a check by hand saw, or had seen before (`kind` duplicate: no request was made)."""

    kind: RecordKind
    observation: Observation
    link: Link
    transition: Transition | None = None

    @property
    def is_replay(self) -> bool:
        return self.kind is RecordKind.DUPLICATE


async def check_by_hand(parts: CheckParts, *, link_id: str, sequence: int | None, waits: bool = True) -> HandCheck:
    """Check one link now.

    Args:
        sequence: the one to record under; None takes the link's next one.
        waits: whether a busy host is waited for, some seconds at most.
    Raises: InvalidInput, NotFound, ConflictingContent (retired link, sequence held by another job), HostBusy,
        DamagedRecord (no sequence is left).
    """
    committed = await parts.blocking(lambda: seen_before(parts.store, link_id=link_id, sequence=sequence))
    if committed is not None:
        return committed
    link = await parts.blocking(lambda: _watched_link(parts.store, link_id))
    if sequence is not None:
        await parts.blocking(lambda: refuse_promised_sequence(parts.store, link, sequence))
    number = next_sequence(link) if sequence is None else sequence
    job_id = hand_job_id(number, link.id)
    parts.require_time()
    visit = Visit(parts, job_id)
    await _enter(visit, link.host, waits=waits)
    try:
        result = await fetch_within_life(parts, link.url, visit)
    except HopDeferred:
        result = no_answer(link.url, Reason.REDIRECT_HOST_BUSY, parts.clock.now())
    observation = observe(link, result, sequence=number, job_id=job_id)
    now = parts.clock.now()
    recorded = await parts.blocking(
        lambda: parts.store.record(observation, default_confirm=parts.default_confirm, now=now)
    )
    return HandCheck(kind=recorded.kind, observation=observation, link=recorded.link, transition=recorded.transition)


async def _enter(visit: Visit, host: str, *, waits: bool) -> None:
    if not waits:
        answer = await visit.ask(host)
        if isinstance(answer, Deferred):
            raise HostBusy(host, answer.until)
        return
    try:
        await visit.enter(host)
    except HopDeferred as busy:
        raise HostBusy(busy.host, busy.until) from None


def seen_before(store: Store, *, link_id: str, sequence: int | None) -> HandCheck | None:
    """The check that is committed under this sequence already, for which nobody need be asked; None if there is none.

    Raises: InvalidInput, NotFound, ConflictingContent.
    """
    check_link_id(link_id)
    link = _watched_link(store, link_id)
    if sequence is None:
        return None
    committed = committed_by_hand(store, link, check_given_sequence(sequence, link))
    return HandCheck(kind=RecordKind.DUPLICATE, observation=committed, link=link) if committed is not None else None


def committed_by_hand(store: Store, link: Link, sequence: int) -> Observation | None:
    """What was committed before under this link and sequence by hand, if anything."""
    for observation in store.observations(link_id=link.id, damaged=unless_observation(link.id, sequence)):
        if observation.sequence == sequence:
            if observation.job_id != hand_job_id(sequence, link.id):
                raise ConflictingContent(
                    f"sequence {sequence} of link {link.id!r} is already held by job {observation.job_id!r}; "
                    "use a sequence that is not taken."
                )
            if observation.url != link.url:
                raise ConflictingContent(
                    f"job {observation.job_id!r} was committed for another URL ({redacted_url(observation.url)}); "
                    "use a new sequence."
                )
            return observation
    return None


def refuse_promised_sequence(store: Store, link: Link, sequence: int) -> None:
    """Raise ConflictingContent if a pending job of a run holds this sequence."""
    for allocation in link.allocations.values():
        job = store.get_job(allocation.run_id, link.id) if allocation.sequence == sequence else None
        if job is not None and job.status is JobStatus.PENDING:
            raise ConflictingContent(
                f"sequence {sequence} of link {link.id!r} is promised to job {job.job_id!r}; use a higher one."
            )


def _watched_link(store: Store, link_id: str) -> Link:
    link = store.get_link(link_id)
    if link is None:
        raise NotFound(f"there is no link {link_id!r}; 'linkwatch links' lists them.")
    if link.retired_at is not None:
        raise ConflictingContent(f"link {link_id!r} is retired; register it again to watch it.")
    return link
