"""Registering, updating and retiring links (SPEC 6, ARCHITECTURE 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.links import Link, LinkState, Owner
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.register import (
    Change,
    Registered,
    list_links,
    register_link,
    retire_link,
    set_owner,
    update_link,
)
from linkwatch_pipeline_tests.builders import MONDAY, URL, a_link, after, an_observation

OTHER_URL = "https://docs.example.com/other"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    opened.put_owner(Owner(team="docs", address="docs@example.com"))
    yield opened
    opened.close()


def register(store: Store, link_id: str = "guide", url: str = URL, **given: Any) -> Registered:
    return register_link(store, **{"link_id": link_id, "url": url, "owner": "docs", "now": MONDAY, **given})


def update(store: Store, **given: Any) -> Registered:
    return update_link(store, **{"link_id": "guide", "now": after(days=1), **given})


def broken(store: Store) -> Link:
    """The registered link after a 200 and a 404."""
    link = register(store).link
    for sequence, status in enumerate((200, 404)):
        store.record(an_observation(link, status, sequence=sequence), default_confirm=1, now=MONDAY)
    return stored(store)


def stored(store: Store, link_id: str = "guide") -> Link:
    link = store.get_link(link_id)
    assert link is not None
    return link


def test_a_registered_link_is_unknown_and_holds_the_canonical_url(store: Store) -> None:
    done = register(store, url="HTTPS://Docs.Example.com:443/guide#top", marker="guide-v1", confirm=2)
    assert done.change is Change.REGISTERED
    assert done.link == stored(store)
    assert done.link == replace(
        a_link(), owner="docs", url=URL, host="docs.example.com", marker="guide-v1", confirm=2, active_since=MONDAY
    )


def test_registering_the_same_again_changes_nothing(store: Store) -> None:
    register(store, marker="guide-v1")
    before = stored(store)
    assert register(store, marker="guide-v1", notify="docs@example.com", now=after(days=1)).change is Change.UNCHANGED
    assert stored(store) == before


def test_a_new_owner_needs_an_address(store: Store) -> None:
    with pytest.raises(NotFound, match="'linkwatch owner ops ADDRESS'"):
        register(store, owner="ops")
    assert store.get_link("guide") is None
    register(store, owner="ops", notify="ops@example.com")
    assert store.get_owner("ops") == Owner(team="ops", address="ops@example.com")


def test_another_address_for_a_known_owner_is_refused(store: Store) -> None:
    with pytest.raises(ConflictingContent, match=r"'linkwatch owner docs new@example\.com'"):
        register(store, notify="new@example.com")
    assert store.get_link("guide") is None
    assert set_owner(store, team="docs", address="new@example.com") == store.get_owner("docs")


def test_an_id_with_another_url_is_refused(store: Store) -> None:
    register(store)
    with pytest.raises(ConflictingContent, match="linkwatch update guide"):
        register(store, url=OTHER_URL)
    assert stored(store).url == URL


def test_an_id_with_another_marker_is_refused(store: Store) -> None:
    register(store)
    with pytest.raises(ConflictingContent, match="linkwatch update guide"):
        register(store, marker="guide-v2")
    assert stored(store).marker is None


def test_a_url_that_another_link_has_is_refused_and_that_link_named(store: Store) -> None:
    register(store)
    with pytest.raises(ConflictingContent, match="link 'guide' of docs"):
        register(store, "twin", "https://DOCS.example.com/guide#here", owner="ops", notify="ops@example.com")
    assert store.get_link("twin") is None
    assert store.get_owner("ops") is None


def test_the_url_of_a_retired_link_is_free(store: Store) -> None:
    register(store)
    retire_link(store, link_id="guide", now=MONDAY)
    assert register(store, "twin").change is Change.REGISTERED
    with pytest.raises(ConflictingContent, match="'twin'"):
        register(store)


def test_a_link_made_without_an_owner_is_completed(store: Store) -> None:
    store.save_link(a_link(owner=None), replaces=None)
    done = register(store, marker="guide-v1")
    assert done.change is Change.REGISTERED
    assert (stored(store).owner, stored(store).marker, stored(store).config_version) == ("docs", "guide-v1", 2)


@pytest.mark.parametrize(
    "given",
    [
        {"link_id": "a#b"},
        {"link_id": "a:b"},
        {"link_id": "a b"},
        {"link_id": "a" * 300},
        {"link_id": ""},
        {"url": "docs.example.com/guide"},
        {"url": "ftp://docs.example.com/"},
        {"url": "http://user:secret@docs.example.com/"},
        {"owner": "do#cs"},
        {"owner": "ops", "notify": "nobody"},
        {"marker": " "},
        {"marker": "two\nlines"},
        {"confirm": 0},
        {"confirm": True},
    ],
)
def test_bad_input_is_refused_and_nothing_written(store: Store, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        register(store, **given)
    assert "secret" not in str(refused.value)
    assert list(store.links()) == []
    assert [owner.team for owner in store.owners()] == ["docs"]


@pytest.mark.parametrize(
    "url",
    ["http://u:p@secret@x.example/", "http://u:secret/more@x.example/", "u:secret@x.example", "http://u:secret @x/"],
)
def test_a_password_is_never_echoed_however_odd_its_url(store: Store, url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        register(store, url=url)
    assert "secret" not in str(refused.value)


def test_a_new_url_makes_the_state_unknown_without_a_transition(store: Store) -> None:
    before = broken(store)
    done = update(store, url=OTHER_URL)
    assert done.change is Change.UPDATED
    assert stored(store) == replace(
        before,
        url=OTHER_URL,
        config_version=before.config_version + 1,
        active_since=after(days=1),
        state=LinkState.UNKNOWN,
        state_since=None,
        version=before.version + 1,
        broken_streak=0,
    )
    assert [t.id for t in store.transitions()] == ["guide:2"]


def test_a_new_url_for_an_unknown_state_is_no_change_of_state(store: Store) -> None:
    register(store)
    assert update(store, url=OTHER_URL).link.version == 0


def test_the_first_404_at_a_new_url_is_told(store: Store) -> None:
    broken(store)
    moved = update(store, url=OTHER_URL).link
    recorded = store.record(an_observation(moved, 404, sequence=2), default_confirm=1, now=after(days=1))
    assert recorded.transition is not None
    assert recorded.transition.id == "guide:4"


def test_a_new_marker_raises_the_configuration_and_keeps_the_state(store: Store) -> None:
    before = broken(store)
    update(store, marker="guide-v2")
    assert stored(store) == replace(before, marker="guide-v2", config_version=before.config_version + 1)
    update(store, marker=None)
    assert stored(store).marker is None


def test_owner_and_confirmation_change_without_touching_the_configuration(store: Store) -> None:
    register(store, confirm=2)
    update(store, owner="ops", notify="ops@example.com", confirm=None)
    assert (stored(store).owner, stored(store).confirm, stored(store).config_version) == ("ops", None, 1)


def test_an_update_to_what_is_there_changes_nothing(store: Store) -> None:
    register(store)
    assert update(store, url=URL + "#part", owner="docs").change is Change.UNCHANGED


def test_an_update_is_refused_whole(store: Store) -> None:
    register(store)
    register(store, "other", OTHER_URL)
    before = list(store.links())
    with pytest.raises(ConflictingContent, match="'other'"):
        update(store, url=OTHER_URL, owner="ops", notify="ops@example.com")
    with pytest.raises(NotFound, match="'absent'"):
        update(store, link_id="absent", marker="x", owner="ops", notify="ops@example.com")
    with pytest.raises(InvalidInput, match="alone changes nothing"):
        update(store, notify="docs@example.com")
    assert list(store.links()) == before
    assert store.get_owner("ops") is None


def test_retiring_freezes_the_state_and_outdates_planned_jobs(store: Store) -> None:
    before = broken(store)
    assert retire_link(store, link_id="guide", now=after(days=1)).change is Change.RETIRED
    assert stored(store) == replace(before, retired_at=after(days=1), config_version=before.config_version + 1)
    assert retire_link(store, link_id="guide", now=after(days=2)).change is Change.UNCHANGED
    assert stored(store).retired_at == after(days=1)
    with pytest.raises(ConflictingContent, match="retired"):
        update(store, marker="x")


def test_the_same_id_and_url_revive_a_retired_link(store: Store) -> None:
    before = broken(store)
    retire_link(store, link_id="guide", now=after(days=1))
    assert register(store, now=after(days=2)).change is Change.REVIVED
    assert stored(store) == replace(before, active_since=after(days=2), config_version=before.config_version + 2)


def test_a_revived_link_takes_its_new_configuration(store: Store) -> None:
    register(store)
    retire_link(store, link_id="guide", now=MONDAY)
    register(store, marker="guide-v2", confirm=3)
    assert (stored(store).marker, stored(store).confirm, stored(store).config_version) == ("guide-v2", 3, 3)


class Hurried:
    """A store whose links another writer changes between our reading and our writing, a number of times."""

    def __init__(self, store: Store, *, times: int) -> None:
        self._store = store
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def save_registry(self, **written: Any) -> None:
        if self._times:
            self._times -= 1
            current = stored(self._store)
            self._store.save_link(replace(current, also_used_by=(*current.also_used_by, "x")), replaces=current)
        self._store.save_registry(**written)


def test_somebody_else_writing_meanwhile_is_no_loss_for_either(store: Store) -> None:
    register(store)
    hurried: Any = Hurried(store, times=3)
    update(hurried, marker="guide-v2")
    assert (stored(store).marker, stored(store).also_used_by) == ("guide-v2", ("x", "x", "x"))


def test_a_link_that_never_stands_still_is_given_up(store: Store) -> None:
    register(store)
    hurried: Any = Hurried(store, times=1000)
    with pytest.raises(StaleWrite, match="try again later"):
        update(hurried, marker="guide-v2", owner="new", notify="new@example.com")
    assert stored(store).marker is None
    assert store.get_owner("new") is None


def test_an_owner_that_somebody_makes_meanwhile_with_another_address_is_refused(store: Store) -> None:
    class Overtaken(Hurried):
        def save_registry(self, **written: Any) -> None:
            store.put_owner(Owner(team="new", address="theirs@example.com"))
            store.save_registry(**written)

    overtaken: Any = Overtaken(store, times=0)
    with pytest.raises(ConflictingContent, match=r"theirs@example\.com"):
        register(overtaken, owner="new", notify="ours@example.com")
    assert list(store.links()) == []


def test_links_are_listed_by_owner_and_state(store: Store) -> None:
    broken(store)
    register(store, "other", OTHER_URL, owner="ops", notify="ops@example.com")
    assert [link.id for link in list_links(store)] == ["guide", "other"]
    assert [link.id for link in list_links(store, owner="ops")] == ["other"]
    assert [link.id for link in list_links(store, owner="ops", state=LinkState.BROKEN)] == []
    assert [link.id for link in list_links(store, state=LinkState.BROKEN)] == ["guide"]
    with pytest.raises(NotFound, match="'nobody'"):
        list_links(store, owner="nobody")
