"""Feed one observation to the durable core without HTTP, for replays and drills (SPEC 5, 14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, StaleWrite
from linkwatch_pipeline.domain.links import Link, check_link_id, check_url
from linkwatch_pipeline.domain.observations import Observation, body_hash
from linkwatch_pipeline.domain.outcomes import RULES_VERSION, classify
from linkwatch_pipeline.domain.recording import Recorded
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.runs import hand_job_id
from linkwatch_pipeline.domain.sequences import check_given_sequence
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.hand_check import committed_by_hand, refuse_promised_sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class FedRecord:
    """The observation as it was fed, and what the store made of it."""

    observation: Observation
    recorded: Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What somebody says was seen.

    Args:
        status: the HTTP status, None when there was no answer.
        body: the page's text; it is hashed and dropped.
        found: the verdict on the expected text, even if none is expected; it counts for a 2xx only.
    """

    link_id: str
    url: str
    sequence: int
    status: int | None
    body: str | None = None
    found: bool = True


def feed_record(store: Store, fed: Fed, *, default_confirm: int, now: datetime) -> FedRecord:
    """Record it under the job id `N:LINK`. A link that is not registered is created, without an owner.

    Args:
        default_confirm: failing observations needed where the link says nothing.
        now: aware UTC; when it counts as observed.
    Raises: InvalidInput, ConflictingContent (another URL or content, a retired link, a sequence that is promised to
        a pending job). Then nothing is written.
    """
    fed = _checked(fed)
    link = store.get_link(fed.link_id)
    check_given_sequence(fed.sequence, link)
    if link is not None:
        _refuse_conflicts(store, link, fed)
    observation = _observed(fed, link.config_version if link is not None else 1, now)
    if link is None:
        _create(store, fed, now)
    recorded = store.record(observation, default_confirm=default_confirm, now=now)
    committed = committed_by_hand(store, recorded.link, fed.sequence) or observation  # a replay: what was said first
    return FedRecord(observation=committed, recorded=recorded)


def _checked(fed: Fed) -> Fed:
    if fed.status is not None and not 100 <= fed.status <= 999:
        raise InvalidInput("status", f"{fed.status} is not an HTTP status", "Give three digits, or none.")
    if fed.status is None and fed.body is not None:
        raise InvalidInput("body", "there is no page without an answer", "Leave it out, or give a status.")
    return Fed(
        link_id=check_link_id(fed.link_id),
        url=check_url(fed.url),
        sequence=fed.sequence,
        status=fed.status,
        body=fed.body,
        found=fed.found,
    )


def _refuse_conflicts(store: Store, link: Link, fed: Fed) -> None:
    if link.url != fed.url:
        raise ConflictingContent(
            f"link {link.id!r} is registered with another URL ({redacted_url(link.url)}); "
            f"change it with 'linkwatch update {link.id} --url URL', or record under another id."
        )
    if link.retired_at is not None:
        raise ConflictingContent(f"link {link.id!r} is retired; register it again to record anything.")
    refuse_promised_sequence(store, link, fed.sequence)


def _observed(fed: Fed, config_version: int, now: datetime) -> Observation:
    success = fed.status is not None and 200 <= fed.status <= 299
    found = fed.found if success else None
    verdict = classify(fed.status, marker_found=found)
    body = (fed.body or "").encode("utf-8", "surrogateescape")
    return Observation(
        job_id=hand_job_id(fed.sequence, fed.link_id),
        run_id=None,
        link_id=fed.link_id,
        url=fed.url,
        sequence=fed.sequence,
        config_version=config_version,
        rules_version=RULES_VERSION,
        started_at=now,
        observed_at=now,
        status=fed.status,
        outcome=verdict.outcome,
        reason=verdict.reason,
        content_hash=body_hash(body) if fed.status is not None else None,
        marker_found=found,
        bytes_read=len(body),
        final_url=redacted_url(fed.url) if fed.status is not None else None,
    )


def _create(store: Store, fed: Fed, now: datetime) -> None:
    """Put the link; the observation itself is refused if somebody else just put another under this id."""
    link = Link(id=fed.link_id, url=fed.url, host=host_key(fed.url), owner=None, active_since=now, allocations={})
    try:
        store.save_link(link, replaces=None)
    except StaleWrite:
        return
