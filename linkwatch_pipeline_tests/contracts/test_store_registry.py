"""What every store promises about links and owners (SPEC 6)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.links import Ack, Allocation, AllocationSlot, Delivery, LinkState, Owner, Place
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import RETRY_ID, RUN_ID, a_link, after, an_observation
from linkwatch_pipeline_tests.contracts.store_workers import (
    CRASH_LINKS,
    MIDDLE,
    NEW_OWNER,
    die_while_writing_the_registry,
)

FULL_LINK = a_link(
    marker="guide-v1 ▸ “quoted”",
    confirm=2,
    config_version=7,
    retired_at=after(days=1),
    places=(Place(file="docs/a b.md", line=3), Place(file="docs/ü.md", line=1, scanned_for="docs")),
    also_used_by=("platform", "sre"),
    state=LinkState.BROKEN,
    state_since=after(microseconds=1),
    version=3,
    last_sequence=41,
    broken_streak=2,
    allocations={
        AllocationSlot.WEEKLY: Allocation(run_id=RUN_ID, sequence=42, host="docs.example.com", config_version=7),
        AllocationSlot.RETRY: Allocation(run_id=RETRY_ID, sequence=43, host="docs.example.com", config_version=6),
    },
)


class TestSavingALink:
    @pytest.mark.parametrize("link", [a_link(owner=None), FULL_LINK], ids=["bare", "full"])
    def test_every_field_comes_back(self, store: Store, link: Any) -> None:
        store.save_link(link, replaces=None)
        assert store.get_link("guide") == link
        assert list(store.links()) == [link]

    def test_nobody_is_there_before(self, store: Store) -> None:
        assert store.get_link("guide") is None
        assert list(store.links()) == list(store.links_by_host()) == []

    def test_it_is_created_only_once(self, store: Store) -> None:
        store.save_link(a_link(), replaces=None)
        with pytest.raises(StaleWrite, match="guide"):
            store.save_link(a_link(marker="other"), replaces=None)
        assert store.get_link("guide") == a_link()

    def test_it_is_replaced_when_it_is_still_as_it_was_read(self, store: Store) -> None:
        store.save_link(a_link(), replaces=None)
        store.save_link(FULL_LINK, replaces=a_link())
        assert store.get_link("guide") == FULL_LINK
        store.save_link(a_link(), replaces=FULL_LINK)
        assert store.get_link("guide") == a_link()

    @pytest.mark.parametrize(
        "meanwhile",
        [
            {"owner": "sre"},
            {"owner": None},
            {"marker": "x"},
            {"confirm": 2},
            {"config_version": 2},
            {"retired_at": after()},
            {"active_since": after()},
            {"places": (Place(file="a.md", line=1),)},
            {"also_used_by": ("sre",)},
            {"state": LinkState.BROKEN},
            {"state_since": after()},
            {"version": 1},
            {"last_sequence": 0},
            {"broken_streak": 1},
            {"allocations": {AllocationSlot.WEEKLY: Allocation(run_id=RUN_ID, sequence=0, host="h", config_version=1)}},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_a_change_since_it_was_read_is_never_overwritten(self, store: Store, meanwhile: dict[str, Any]) -> None:
        changed = replace(a_link(), **meanwhile)
        store.save_link(changed, replaces=None)
        with pytest.raises(StaleWrite, match="guide"):
            store.save_link(a_link(marker="mine", config_version=2), replaces=a_link())
        assert store.get_link("guide") == changed

    def test_the_order_of_a_map_is_no_change(self, store: Store) -> None:
        store.save_link(FULL_LINK, replaces=None)
        turned = replace(FULL_LINK, allocations=dict(reversed([*FULL_LINK.allocations.items()])))
        store.save_link(a_link(), replaces=turned)
        assert store.get_link("guide") == a_link()

    def test_a_link_that_is_not_there_cannot_be_replaced(self, store: Store) -> None:
        with pytest.raises(StaleWrite):
            store.save_link(a_link(marker="x"), replaces=a_link())
        assert store.get_link("guide") is None

    def test_an_observation_and_an_allocation_are_changes_too(self, store: Store) -> None:
        store.save_link(a_link(), replaces=None)
        store.record(an_observation(a_link()), default_confirm=1, now=after(minutes=2))
        observed = store.get_link("guide")
        with pytest.raises(StaleWrite):
            store.save_link(a_link(marker="x"), replaces=a_link())
        assert observed is not None
        store.allocate([observed], AllocationSlot.WEEKLY, RUN_ID)
        with pytest.raises(StaleWrite):
            store.save_link(replace(observed, marker="x"), replaces=observed)


class TestSavingManyAtOnce:
    SRE = Owner(team="sre", address="sre@example.com")

    def test_owners_and_links_are_written_together(self, store: Store) -> None:
        store.save_link(a_link(), replaces=None)
        new = [a_link(f"new-{n:03}", f"https://h{n}.example.com/") for n in range(250)]
        store.save_registry(owners=[self.SRE], links=[(FULL_LINK, a_link()), *((link, None) for link in new)])
        assert list(store.links()) == [FULL_LINK, *new]
        assert list(store.owners()) == [self.SRE]

    def test_owners_or_links_alone_or_nothing_will_do(self, store: Store) -> None:
        store.save_registry()
        store.save_registry(owners=[self.SRE])
        store.save_registry(links=[(a_link(), None)])
        assert (list(store.owners()), list(store.links())) == ([self.SRE], [a_link()])

    def test_an_owner_with_the_same_address_is_no_conflict(self, store: Store) -> None:
        store.put_owner(self.SRE)
        store.save_registry(owners=[self.SRE], links=[(a_link(), None)])
        assert (list(store.owners()), list(store.links())) == ([self.SRE], [a_link()])

    @pytest.mark.parametrize(
        "last",
        [
            (a_link("there", marker="x"), None),
            (a_link("there"), a_link("there", marker="x")),
            (a_link("no"), FULL_LINK),
        ],
        ids=["exists", "changed", "absent"],
    )
    def test_one_link_that_is_not_as_it_was_read_stops_all(self, store: Store, last: Any) -> None:
        store.save_link(a_link("there"), replaces=None)
        many = [(a_link(f"new-{n:03}", f"https://h{n}.example.com/"), None) for n in range(150)]
        with pytest.raises(StaleWrite, match=last[0].id):
            store.save_registry(owners=[self.SRE], links=[*many, last])
        assert (list(store.owners()), list(store.links())) == ([], [a_link("there")])

    def test_an_owner_that_got_another_address_meanwhile_stops_all(self, store: Store) -> None:
        store.put_owner(self.SRE)
        with pytest.raises(StaleWrite, match="sre"):
            store.save_registry(
                owners=[Owner(team="docs", address="d@example.com"), Owner(team="sre", address="x@example.com")],
                links=[(a_link(), None)],
            )
        assert (list(store.owners()), list(store.links())) == ([self.SRE], [])

    def test_a_process_that_dies_in_the_middle_leaves_nothing(self, open_store: Callable[[], Store]) -> None:
        open_store().close()
        process = multiprocessing.get_context("spawn").Process(
            target=die_while_writing_the_registry, args=(open_store,), daemon=True
        )
        process.start()
        process.join()
        assert process.exitcode == MIDDLE
        store = open_store()
        assert (list(store.owners()), list(store.links())) == ([], [])
        store.save_registry(owners=[NEW_OWNER], links=[(link, None) for link in CRASH_LINKS])
        assert (list(store.owners()), list(store.links())) == ([NEW_OWNER], CRASH_LINKS)
        store.close()


class TestListingLinks:
    @pytest.fixture(autouse=True)
    def registry(self, store: Store) -> None:
        for link_id, host, owner in [
            ("m", "b.example.com", "docs-team"),
            ("z", "a.example.com", "docs-team"),
            ("B", "b.example.com", "sre"),
            ("a.1", "c.example.com", None),
            ("a-1", "b.example.com", "docs-team"),
            ("a", "a-b.example.com", "sre"),
        ]:
            store.save_link(a_link(link_id, f"https://{host}/{link_id}", owner=owner), replaces=None)

    def test_all_come_in_id_order(self, store: Store) -> None:
        assert [link.id for link in store.links()] == ["B", "a", "a-1", "a.1", "m", "z"]

    def test_an_owners_come_in_id_order(self, store: Store) -> None:
        assert [link.id for link in store.links(owner="docs-team")] == ["a-1", "m", "z"]
        assert list(store.links(owner="nobody")) == []

    def test_hosts_come_one_after_the_other(self, store: Store) -> None:
        assert [(link.host[0:3], link.id) for link in store.links_by_host()] == [
            ("a-b", "a"),
            ("a.e", "z"),
            ("b.e", "B"),
            ("b.e", "a-1"),
            ("b.e", "m"),
            ("c.e", "a.1"),
        ]

    @pytest.mark.parametrize(
        ("after_host", "ids"),
        [
            ("a", ["a", "z", "B", "a-1", "m", "a.1"]),
            ("a.example.com", ["B", "a-1", "m", "a.1"]),
            ("b.example.com", ["a.1"]),
            ("b.example.com.", ["a.1"]),
            ("c.example.com", []),
        ],
    )
    def test_a_resumed_listing_begins_behind_the_host(self, store: Store, after_host: str, ids: list[str]) -> None:
        assert [link.id for link in store.links_by_host(after_host=after_host)] == ids

    def test_links_may_be_written_while_they_are_listed(self, store: Store) -> None:
        seen = []
        for link in store.links_by_host():
            store.allocate([link], AllocationSlot.WEEKLY, RUN_ID)
            seen.append(link.id)
        assert seen == ["a", "z", "B", "a-1", "m", "a.1"]


def test_a_registry_longer_than_any_page_comes_whole_and_in_order(store: Store, many: int) -> None:
    ids = [f"link-{n:04}" for n in range(many)]
    links = [a_link(link_id, f"https://h{n % 3}.example.com/{n}") for n, link_id in enumerate(ids)]
    store.save_registry(links=[(link, None) for link in links])
    assert [link.id for link in store.links()] == ids
    assert [link.id for link in store.links(owner="docs-team")] == ids
    by_host = [(link.host, link.id) for link in store.links_by_host()]
    assert len(by_host) == many
    assert by_host == sorted(by_host)


class TestOwners:
    def test_an_owner_is_put_read_and_replaced(self, store: Store) -> None:
        assert store.get_owner("sre") is None
        store.put_owner(Owner(team="sre", address="sre@example.com"))
        store.put_owner(Owner(team="docs team", address="docs@example.com"))
        store.put_owner(Owner(team="sre", address="oncall@example.com"))
        assert store.get_owner("sre") == Owner(team="sre", address="oncall@example.com")
        assert [owner.team for owner in store.owners()] == ["docs team", "sre"]

    def test_how_a_team_is_told_is_kept(self, store: Store) -> None:
        digest = Owner(team="sre", address="sre@example.com", delivery=Delivery.DIGEST)
        store.put_owner(digest)
        assert (store.get_owner("sre"), list(store.owners())) == (digest, [digest])

    def test_making_links_of_a_known_team_leaves_how_it_is_told(self, store: Store) -> None:
        digest = Owner(team="sre", address="sre@example.com", delivery=Delivery.DIGEST)
        store.put_owner(digest)
        store.save_registry(owners=[Owner(team="sre", address="sre@example.com")], links=[(a_link(), None)])
        assert store.get_owner("sre") == digest


class TestAcknowledgements:
    def test_one_is_kept_with_its_link_and_outlives_observations(self, store: Store) -> None:
        known = a_link(ack=Ack(version=1, reason="ticket 7", by="ana", at=after()))
        store.save_link(known, replaces=None)
        store.record(an_observation(known, 404), default_confirm=1, now=after(minutes=2))
        [link] = store.links()
        assert link.acknowledged == known.ack
        store.record(an_observation(known, 200, sequence=1), default_confirm=1, now=after(minutes=3))
        [link] = store.links()
        assert (link.ack, link.acknowledged) == (known.ack, None)
