"""Changes of services on their way into the outbox that tells of links: same store, same sender, once per change.

A service becomes a link of its own that no weekly run ever takes, and a change one observation of it. The state
machine, the transition, the notice, its owner and its delivery are then those of every link. The database that made the
change is told last, so a crash between the two repeats the telling; the observation's job id says that it was there.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord, InvalidInput, NotFound
from linkwatch_pipeline.domain.links import Link, check_link_id, check_team, check_url
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import RULES_VERSION, Outcome
from linkwatch_pipeline.domain.service_changes import JOB_PREFIX, ServiceChange
from linkwatch_pipeline.domain.service_status import Service, Status
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import ChangeLog, ServiceDirectory, Store

logger = logging.getLogger(__name__)

TOLD_TOGETHER = 100
# Runs take links that were active when they began: never this one.
# No link of a handbook has a fragment, so this one is never taken for the same page.
_MARK = "#service"
_IN_NO_RUN = datetime(9999, 12, 31, tzinfo=UTC)


class ServiceChanges(ChangeLog, ServiceDirectory, Protocol):
    """Where changes are written, and whose they are."""


def tell_services(changes: ServiceChanges, store: Store, *, now: datetime) -> int:
    """Bring every untold change into the outbox, the oldest first; how many. Raises StoreError; repeating is safe.

    The changes of a service of which something is damaged wait; DamagedRecord is raised when the others are told.
    """
    told = 0
    while untold := changes.untold(limit=TOLD_TOGETHER):
        services = {service.id: service for service in changes.services()}
        waiting: dict[str, DamagedRecord] = {}
        for change in untold:
            if change.service_id in waiting:
                continue
            try:
                told += _told_safely(change, services.get(change.service_id), store, now)
            except DamagedRecord as error:
                waiting[change.service_id] = error
        done = [change for change in untold if change.service_id not in waiting]
        if not done:
            raise next(iter(waiting.values()))
        changes.mark_told(done)
    return told


def service_link_id(service_id: str) -> str:
    """The id of a service's link: `service-` and its id, or a digest of one that no link may have."""
    try:
        return check_link_id(f"service-{service_id}")
    except InvalidInput:
        return f"service-{hashlib.sha256(service_id.encode()).hexdigest()[:32]}"


def owner_of_services(user_id: str) -> str | None:
    """The team that hears of a user's services: `user-` and their id; None if no team may be called so."""
    try:
        return check_team(f"user-{user_id}")
    except InvalidInput:
        return None


def _told_safely(change: ServiceChange, service: Service | None, store: Store, now: datetime) -> bool:
    """Tell it; a change that the store will never take (its link was retired by hand, say) keeps no other from it."""
    try:
        return _tell(change, service, store, now)
    except (ConflictingContent, InvalidInput, NotFound) as error:
        logger.warning("change not told: %s", error, extra={"action": "tell", "service_id": change.service_id})
        return False


def _tell(change: ServiceChange, service: Service | None, store: Store, now: datetime) -> bool:
    link = _link_of(change, service, store, now)
    if link is None:
        logger.warning("change not told", extra={"action": "tell", "service_id": change.service_id})
        return False
    job_id = f"{JOB_PREFIX}{change.service_id}:{change.version}@{format_seconds(change.checked_at)}"
    if any(observation.job_id == job_id for observation in store.observations(link_id=link.id)):
        return False
    store.record(_observation(change, link, job_id), default_confirm=1, now=now)
    return True


def _link_of(change: ServiceChange, service: Service | None, store: Store, now: datetime) -> Link | None:
    """The service's link with its URL of today; None for a service that is gone, or whose URL no link may have."""
    link_id = service_link_id(change.service_id)
    stored = store.get_link(link_id)
    if service is None:
        return stored
    try:
        url = check_url(service.url) + _MARK
    except InvalidInput:
        return stored
    owner = owner_of_services(change.user_id)
    if stored is not None and (stored.url, stored.owner) == (url, owner):
        return stored
    link = _with(stored, url, owner) if stored is not None else _new_link(link_id, url, owner)
    store.save_link(link, replaces=stored)
    return link


def _new_link(link_id: str, url: str, owner: str | None) -> Link:
    return Link(
        id=link_id, url=url, host=host_key(url), owner=owner, confirm=1, active_since=_IN_NO_RUN, allocations={}
    )


def _with(link: Link, url: str, owner: str | None) -> Link:
    """The link with the service's URL of today; its state is the service's, which moved with it."""
    version = link.config_version + (url != link.url)
    return replace(link, url=url, host=host_key(url), owner=owner, config_version=version)


def _observation(change: ServiceChange, link: Link, job_id: str) -> Observation:
    return Observation(
        job_id=job_id,
        run_id=None,
        link_id=link.id,
        url=link.url,
        sequence=link.highest_sequence + 1,
        config_version=link.config_version,
        rules_version=RULES_VERSION,
        started_at=change.checked_at,
        observed_at=change.checked_at,
        status=None,
        outcome=Outcome.REACHABLE if change.to_status is Status.UP else Outcome.BROKEN,
    )
