"""What every store promises about records that cannot be read: one costs itself, and is named (decision 0045)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.links import Owner, Place
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.move_history import everything
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, a_run, after, an_observation, dispatched

Spoil = Callable[..., None]
NAMES = ("a", "bad", "c")
HOST = "docs.example.com"


@pytest.fixture
def links(store: Store) -> Store:
    """Three links, the middle one long."""
    places = tuple(Place(file=f"pages/{n:04}.md", line=7) for n in range(100))
    for name in NAMES:
        store.save_link(a_link(name, places=places if name == "bad" else ()), replaces=None)
    return store


@pytest.fixture
def notices(links: Store) -> Store:
    """A notice of each of the links, all of one run."""
    jobs = dispatched(links, [a_link(name) for name in NAMES])
    for minute, job in enumerate(jobs):
        link = links.get_link(job.link_id)
        assert link is not None
        links.record(an_observation(link, 404, job=job), default_confirm=1, now=after(minutes=minute))
    return links


def a_mute(target: str) -> Mute:
    return Mute(target=target, reason="known", muted_by=None, since=MONDAY, until=after(days=9))


def read(found: Callable[[Damaged], Iterable[Any]]) -> tuple[list[str], list[DamagedRecord]]:
    """The ids of what a list holds, and what it told."""
    told: list[DamagedRecord] = []
    return [getattr(record, "transition_id", None) or record.id for record in found(told.append)], told


LINK_LISTS: dict[str, Callable[[Store, Damaged | None], Iterable[Any]]] = {
    "all": lambda store, damaged: store.links(damaged=damaged),
    "of an owner": lambda store, damaged: store.links(owner="docs-team", damaged=damaged),
    "by host": lambda store, damaged: store.links_by_host(damaged=damaged),
    "in brief": lambda store, damaged: store.links_by_host(brief=True, damaged=damaged),
}
NOTICE_LISTS: dict[str, Callable[[Store, Damaged | None], Iterable[Any]]] = {
    "all": lambda store, damaged: store.notices(damaged=damaged),
    "unsettled": lambda store, damaged: store.notices(unsettled_only=True, damaged=damaged),
    "of a run": lambda store, damaged: store.notices(run_id=RUN_ID, damaged=damaged),
}


OBSERVED: dict[str, Callable[[Store, Damaged | None], Iterable[Any]]] = {
    "all": lambda store, damaged: store.observations(damaged=damaged),
    "of a link": lambda store, damaged: store.observations(link_id="bad", damaged=damaged),
    "of a run": lambda store, damaged: store.observations(run_id=RUN_ID, damaged=damaged),
    "of a week": lambda store, damaged: store.observations(since=MONDAY, until=MONDAY + WEEK, damaged=damaged),
}
CHANGED: dict[str, Callable[[Store, Damaged | None], Iterable[Any]]] = {
    "all changes": lambda store, damaged: store.transitions(damaged=damaged),
    "changes of a link": lambda store, damaged: store.transitions(link_id="bad", damaged=damaged),
}


@pytest.mark.parametrize("which", LINK_LISTS)
def test_a_damaged_link_is_left_out_and_told(links: Store, spoil: Spoil, which: str) -> None:
    spoil("links", "bad", state="no such state")
    names, told = read(lambda damaged: LINK_LISTS[which](links, damaged))
    assert names == ["a", "c"]
    [error] = told
    assert "bad" in error.record
    assert "state cannot be read" in str(error)
    assert error.url == a_link().url
    with pytest.raises(DamagedRecord, match="state cannot be read"):
        list(LINK_LISTS[which](links, None))


@pytest.mark.parametrize("which", NOTICE_LISTS)
def test_a_damaged_notice_is_left_out_and_told(notices: Store, spoil: Spoil, which: str) -> None:
    spoil("notices", "bad:1", status="no such status")
    names, told = read(lambda damaged: NOTICE_LISTS[which](notices, damaged))
    assert names == ["a:1", "c:1"]
    [error] = told
    assert "bad:1" in error.record
    assert "status cannot be read" in str(error)
    with pytest.raises(DamagedRecord, match="status cannot be read"):
        list(NOTICE_LISTS[which](notices, None))


@pytest.mark.parametrize("which", [*OBSERVED, *CHANGED])
def test_a_damaged_observation_or_transition_is_left_out_and_told(notices: Store, spoil: Spoil, which: str) -> None:
    found, table, key, field = (
        (OBSERVED[which], "observations", "bad:0", "page_hints")
        if which in OBSERVED
        else (CHANGED[which], "transitions", "bad:1", "to_state")
    )
    before = [record.link_id for record in found(notices, None)]
    spoil(table, key, **{field: "no such thing"})
    told: list[DamagedRecord] = []
    assert [record.link_id for record in found(notices, told.append)] == [name for name in before if name != "bad"]
    assert [(error.key, f"{field} cannot be read" in str(error)) for error in told] == [(key, True)]
    with pytest.raises(DamagedRecord, match=field):
        list(found(notices, None))


def test_a_damaged_observation_keeps_nothing_from_the_next_and_is_not_written_over(
    notices: Store, spoil: Spoil
) -> None:
    link = notices.get_link("bad")
    assert link is not None
    spoil("observations", "bad:0", page_hints="no such thing")
    recorded = notices.record(an_observation(link, sequence=1), default_confirm=1, now=after(hours=1))
    again = notices.record(an_observation(link, sequence=1), default_confirm=1, now=after(hours=2))
    assert (recorded.link.last_sequence, again.kind) == (1, RecordKind.DUPLICATE)
    with pytest.raises(DamagedRecord, match="page_hints"):
        notices.record(an_observation(link, sequence=0), default_confirm=1, now=after(hours=3))
    with pytest.raises(DamagedRecord, match="page_hints"):
        list(everything(notices))


def test_a_damaged_run_is_left_out_and_told(store: Store, spoil: Spoil) -> None:
    for week in range(3):
        store.create_run(a_run(MONDAY + week * WEEK))
    ids = [run.run_id for run in store.runs()]
    spoil("runs", ids[1], expected="b")
    told: list[DamagedRecord] = []
    assert [run.run_id for run in store.runs(damaged=told.append)] == [ids[0], ids[2]]
    assert [run.run_id for run in store.runs(open_only=True, damaged=told.append)] == [ids[0], ids[2]]
    assert [(error.key, "expected is not a whole number" in str(error)) for error in told] == [(ids[1], True)] * 2
    for attempt in (
        lambda: list(store.runs()),
        lambda: store.get_run(ids[1]),
        lambda: store.create_run(a_run(MONDAY + WEEK)),
    ):
        with pytest.raises(DamagedRecord, match="expected"):
            attempt()


def test_a_damaged_mute_is_left_out_and_told(store: Store, spoil: Spoil) -> None:
    mutes = [a_mute(f"link:{name}") for name in NAMES]
    for mute in mutes:
        store.save_mute(mute, replaces=None)
    spoil("mutes", "link:bad", until="banana")
    told: list[DamagedRecord] = []
    assert list(store.mutes(damaged=told.append)) == [mutes[0], mutes[2]]
    assert [(error.key, "until cannot be read" in str(error)) for error in told] == [("link:bad", True)]
    for attempt in (lambda: list(store.mutes()), lambda: store.save_mute(mutes[1], replaces=None)):
        with pytest.raises(DamagedRecord, match="until"):
            attempt()


def test_nobody_is_admitted_to_a_host_whose_lease_cannot_be_read(store: Store, spoil: Spoil) -> None:
    def enter() -> object:
        return store.acquire_host(HOST, token="worker", job_id="", now=MONDAY, skew=timedelta(0))

    enter()
    spoil("hosts", HOST, next_allowed_at="banana")
    for attempt in (enter, lambda: store.get_host(HOST)):
        with pytest.raises(DamagedRecord, match=f"{HOST}.*next_allowed_at cannot be read"):
            attempt()


def test_the_notices_of_a_link_are_its_own_matter(notices: Store, spoil: Spoil) -> None:
    spoil("notices", "bad:1", to_state="no such state")
    assert read(lambda damaged: notices.notices(link_id="a", damaged=damaged)) == (["a:1"], [])
    names, [error] = read(lambda damaged: notices.notices(link_id="bad", damaged=damaged))
    assert (names, "bad:1" in error.record) == ([], True)


def test_who_asks_for_the_record_itself_is_told_and_nothing_is_written_over_it(notices: Store, spoil: Spoil) -> None:
    link, notice = notices.get_link("bad"), notices.get_notice("bad:1")
    assert link is not None
    assert notice is not None
    spoil("links", "bad", state="no such state")
    spoil("notices", "bad:1", status="no such status")
    for attempt in (
        lambda: notices.get_link("bad"),
        lambda: notices.save_link(link, replaces=link),
        lambda: notices.record(an_observation(link, sequence=7), default_confirm=1, now=after(hours=1)),
        lambda: notices.get_notice("bad:1"),
        lambda: notices.claim_notice("bad:1", by="sender", now=after(hours=1)),
        lambda: notices.update_notice(notice, replaces=notice),
        lambda: list(everything(notices)),
    ):
        with pytest.raises(DamagedRecord, match="bad"):
            attempt()


def test_once_it_is_mended_all_of_it_is_there(notices: Store, spoil: Spoil) -> None:
    notices.put_owner(Owner(team="docs-team", address="docs@example.com"))
    before = list(everything(notices))
    spoil("notices", "bad:1", status="no such status")
    read(lambda damaged: notices.notices(unsettled_only=True, damaged=damaged))
    spoil("notices", "bad:1", status="pending")
    assert list(everything(notices)) == before
