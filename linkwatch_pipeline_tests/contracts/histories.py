"""Weeks in the life of a store, written by its own methods and not by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import count_chains
from linkwatch_pipeline.ports import ExportedWeek, Store
from linkwatch_pipeline_tests.builders import a_link, a_run, after, an_observation, dispatched

STATUSES = [200, 200, 200, 200, 200, 200, 404, 404, 429, 500, None]
LINKS_PER_HOST = 3
A_MUTE = Mute(
    target="host:h0.example.com", reason="maintenance", muted_by=None, since=after(days=1), until=after(days=9)
)


def live_through(store: Store, *, weeks: int, links: int, first: int = 0, seed: int = 1) -> None:
    """So many weeks, one after the other from the week `first`: every link observed, some notices sent.

    Each week is closed. The links are registered with the first week that is lived through on an empty store.
    """
    if not list(store.owners()):
        store.put_owner(Owner(team="docs-team", address="docs@example.com"))
        new = [a_link(f"link-{n:05}", f"https://h{n // LINKS_PER_HOST}.example.com/{n}") for n in range(links)]
        store.save_registry(links=[(link, None) for link in new])
        store.save_mute(A_MUTE, replaces=None)
    for week in range(first, first + weeks):
        _live_a_week(store, week, Random(f"{seed}/{week}"))


def _live_a_week(store: Store, week: int, chance: Random) -> None:
    monday = after(days=7 * week)
    links = {link.id: link for link in store.links()}
    for job in dispatched(store, list(links.values()), run=a_run(monday)):
        seen_at = monday + timedelta(seconds=len(links))
        store.acquire_host(job.host, token=job.job_id, job_id=job.job_id, now=seen_at, skew=timedelta(0))
        departure = Departure(at=seen_at, answered=True)
        store.release_host(job.host, token=job.job_id, departure=departure, cooldown=timedelta(0), chance=chance)
        look = an_observation(
            links[job.link_id], chance.choice(STATUSES), job=job, started_at=seen_at, observed_at=seen_at
        )
        told = store.record(look, default_confirm=1, now=seen_at).transition
        if told is not None and chance.random() < 0.8:
            _send(store, told.id)
    run = next(run for run in store.runs() if run.intended_at == monday)
    closed_at = monday + timedelta(hours=1)
    store.close_run(run.run_id, totals=count_chains(store.chains(run.run_id)), at=closed_at)
    if week % 2 == 0:
        exported = ExportedWeek(week=monday, rows=len(links), sha256="0" * 64, exported_at=closed_at)
        store.mark_exported(exported)


def _send(store: Store, transition_id: str) -> None:
    notice = store.get_notice(transition_id)
    assert notice is not None
    assert store.update_notice(replace(notice, release_at=notice.created_at), replaces=notice)
    mine = store.claim_notice(transition_id, by="sender", now=after(days=9999))
    assert mine is not None
    sent = replace(mine, status=NoticeStatus.SENT, attempts=1, provider_id="1", sent_at=mine.created_at)
    assert store.save_notice(sent, claimed_by="sender")
