"""What every store promises about links that say much: a footer's URL stands in every file of a handbook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.links import Ack, AllocationSlot, Link, LinkState, Place, in_brief
from linkwatch_pipeline.domain.notices import MOST_PLACES_TOLD, MOST_TEAMS_TOLD
from linkwatch_pipeline.domain.observations import RedirectHop
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.move_history import everything
from linkwatch_pipeline_tests.builders import RUN_ID, a_link, a_run, after, an_observation, dispatched

MANY = 6_000


def places(how_many: int, file: str = "pages/general-information-and-resources/page-{:05}.md") -> tuple[Place, ...]:
    return tuple(Place(file=file.format(n), line=7, scanned_for="docs-team") for n in range(how_many))


LONG = a_link(places=places(MANY), also_used_by=tuple(f"team {n:04} {'x' * 70}" for n in range(5_000)))


@pytest.fixture
def long(store: Store) -> Link:
    store.save_link(LONG, replaces=None)
    return LONG


def test_it_comes_back_whole_wherever_it_is_read(store: Store, long: Link) -> None:
    assert store.get_link("guide") == long
    assert list(store.links()) == list(store.links(owner="docs-team")) == list(store.links_by_host()) == [long]


def test_in_brief_a_link_comes_without_what_may_be_long(store: Store, long: Link) -> None:
    store.save_link(short := a_link("short", places=places(1), also_used_by=("sre",)), replaces=None)
    assert store.get_link("guide", brief=True) == in_brief(long) == a_link()
    assert store.get_link("short", brief=True) == in_brief(short) == a_link("short")
    assert list(store.links_by_host(brief=True)) == [a_link(), a_link("short")]
    assert store.get_link("nobody", brief=True) is None


def test_checks_leave_it_whole_and_its_notice_tells_the_first_of_it(store: Store, long: Link) -> None:
    for week, status in enumerate((200, 404)):
        [job] = dispatched(store, [in_brief(long)], run=a_run(after(days=7 * week)))
        recorded = store.record(an_observation(long, status, job=job), default_confirm=1, now=after(days=7 * week))
        assert recorded.link == store.get_link("guide", brief=True)
    [stored] = store.links()
    assert (stored.state, stored.places, stored.also_used_by) == (LinkState.BROKEN, long.places, long.also_used_by)
    [notice] = store.notices()
    assert (notice.places, notice.further_places) == (long.places[:MOST_PLACES_TOLD], MANY - MOST_PLACES_TOLD)
    assert notice.also_used_by == long.also_used_by[:MOST_TEAMS_TOLD]
    assert store.get_notice(notice.transition_id) == notice


def test_its_places_are_replaced_lessened_and_taken_away(store: Store, long: Link) -> None:
    stored = long
    for how_many in (MANY + 1, 1, MANY, 0):
        after_it = replace(stored, places=places(how_many, file="moved/{}.md"))
        store.save_link(after_it, replaces=stored)
        assert store.get_link("guide") == after_it
        stored = after_it


def test_something_else_of_it_may_change(store: Store, long: Link) -> None:
    known = replace(long, ack=Ack(version=1, reason="ticket 7", by=None, at=after()))
    store.save_link(known, replaces=long)
    [held] = store.allocate([in_brief(known)], AllocationSlot.WEEKLY, RUN_ID)
    assert held is not None
    assert store.get_link("guide") == replace(known, allocations={AllocationSlot.WEEKLY: held})


def test_a_change_of_one_place_since_it_was_read_is_never_overwritten(store: Store, long: Link) -> None:
    moved = replace(long, places=(*long.places[:-1], Place(file="moved.md", line=1)))
    store.save_link(moved, replaces=long)
    with pytest.raises(StaleWrite, match="guide"):
        store.save_link(replace(long, places=()), replaces=long)
    with pytest.raises(StaleWrite, match="guide"):
        store.save_link(replace(long, places=()), replaces=in_brief(long))
    assert store.get_link("guide") == moved


def test_many_of_them_are_written_all_or_none(store: Store, long: Link) -> None:
    new = [a_link(f"new-{n:03}", f"https://h{n}.example.com/", places=places(400)) for n in range(40)]
    moved = replace(long, places=places(MANY, file="moved/{}.md"))
    with pytest.raises(StaleWrite, match="guide"):
        store.save_registry(links=[*((link, None) for link in new), (moved, replace(long, marker="other"))])
    assert list(store.links()) == [long]
    store.save_registry(links=[*((link, None) for link in new), (moved, long)])
    assert list(store.links()) == [moved, *new]


def test_it_moves_to_another_store(store: Store) -> None:
    origin = SqliteStore.open(Path(":memory:"))
    origin.save_link(LONG, replaces=None)
    origin.record(an_observation(LONG, 404), default_confirm=1, now=after(minutes=2))
    history = list(everything(origin))
    origin.close()
    store.restore(history, source="one")
    assert list(everything(store)) == history


WORST = "\u0001"  # what JSON spells longest for its bytes


def test_the_largest_value_of_every_field_is_kept(store: Store) -> None:
    """Larger than what scan, import, register and the fetcher let through, so that these can only be easier."""
    url = "https://" + ".".join(["h" * 61] * 3) + ".example.com/" + "a" * 1_800
    link = a_link(
        "i" * 80,
        url,
        owner="o" * 80,
        marker="\U0001f517" * 500,
        places=tuple(Place(file=WORST * 4_096, line=n, scanned_for="t" * 80) for n in range(40)),
        also_used_by=tuple(f"{n:03}{'t' * 77}" for n in range(200)),
        ack=Ack(version=1, reason="\U0001f517" * 300, by="\U0001f517" * 80, at=after()),
    )
    store.save_link(link, replaces=None)
    look = an_observation(
        link,
        404,
        content_type="t" * 96 * 1024,
        final_url=url,
        redirects=tuple(RedirectHop(url=url, status=301) for _ in range(3)),
        page_hints=("says_not_found", "says_for_sale", "asks_to_sign_in", "empty"),
    )
    store.record(look, default_confirm=1, now=after(minutes=2))
    assert list(store.observations()) == [look]
    [notice] = store.notices()
    claimed = store.claim_notice(notice.transition_id, by="w" * 300, now=after(minutes=3))
    assert claimed is not None
    assert store.save_notice(replace(claimed, last_error="e" * 100_000), claimed_by="w" * 300)
    [stored] = store.links()
    assert stored.places == link.places
