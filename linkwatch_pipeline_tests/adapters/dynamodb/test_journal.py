"""What a batch costs others whose writer was killed: calls by the journal, not by the link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.domain.links import AllocationSlot, Link, Owner
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.builders import RUN_ID, a_link, after
from linkwatch_pipeline_tests.cloud.tables import StandingClock, store_on

SRE = Owner(team="sre", address="sre@example.com")
OLD = tuple(a_link(f"old-{n:03}", f"https://o{n}.example.com/", owner="sre") for n in range(60))
MOVED = tuple(replace(link, marker="x", config_version=2) for link in OLD)
NEW = tuple(a_link(f"new-{n:03}", f"https://h{n}.example.com/", owner="sre") for n in range(60))


class PowerCut(BaseException):
    """The process is gone: nothing it had in hand is done any more."""


@contextmanager
def counted(client: Any) -> Iterator[Counter[str]]:
    """The calls that are made meanwhile, by operation."""
    calls: Counter[str] = Counter()

    def count(model: Any, **_: Any) -> None:
        calls[model.name] += 1

    client.meta.events.register("before-call.dynamodb", count)
    yield calls
    client.meta.events.unregister("before-call.dynamodb", count)


def save(store: DynamoStore) -> None:
    store.save_registry(links=[*zip(MOVED, OLD, strict=True), *((link, None) for link in NEW)])


def seen(store: DynamoStore) -> list[Link]:
    return list(store.links())


@pytest.fixture
def half(client: Any, name: str) -> DynamoStore:
    """A store of whose 120 links all were marked when their writer was killed."""
    store = store_on(client, name)
    store.save_registry(owners=[SRE], links=[(link, None) for link in OLD])

    def cut(params: dict[str, Any], **_: Any) -> None:
        if params["Item"].get("state") == {"S": "committed"}:
            raise PowerCut

    client.meta.events.register("before-parameter-build.dynamodb.PutItem", cut)
    with pytest.raises(PowerCut):
        save(store)
    client.meta.events.unregister("before-parameter-build.dynamodb.PutItem", cut)
    return store_on(client, name, page_items=None)


def test_a_listing_asks_for_the_journal_once(client: Any, half: DynamoStore) -> None:
    for listing in (half.links, half.links_by_host, lambda: half.links(owner="sre")):
        with counted(client) as calls:
            assert sorted(listing(), key=lambda link: link.id) == list(OLD)
        assert calls["GetItem"] == 1
        assert sum(calls.values()) <= 4  # one page of entries, two batches of links


def test_health_hears_of_it_until_the_batch_is_repeated(client: Any, name: str, half: DynamoStore) -> None:
    clock = StandingClock(after(minutes=6))
    later = store_on(client, name, clock=clock)
    assert "batch_unfinished" not in codes(half, StandingClock(after(minutes=4)))
    assert "batch_unfinished" in codes(later, clock)
    save(later)
    assert later.unfinished_since() is None


@pytest.mark.parametrize(("minutes", "ended"), [(59, False), (61, True)])
def test_any_change_an_hour_later_ends_it(client: Any, name: str, half: DynamoStore, minutes: int, ended: bool) -> None:
    later = store_on(client, name, clock=StandingClock(after(minutes=minutes)))
    later.save_link(a_link(), replaces=None)
    assert (half.unfinished_since() is None) == ended
    assert seen(half) == [a_link(), *OLD]
    if ended:
        assert not list(
            client.query(
                TableName=name,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": "BATCHES"}},
            )["Items"]
        )


def codes(store: DynamoStore, clock: StandingClock) -> list[str]:
    return [finding.code for finding in watch_health(store, None, clock=clock, only_reads=True)]


def test_who_repeats_the_batch_settles_what_was_left_in_groups(client: Any, half: DynamoStore) -> None:
    with counted(client) as calls:
        save(half)
    assert sum(calls.values()) < 40  # each of 120 by itself would be 600
    assert seen(half) == sorted([*MOVED, *NEW], key=lambda link: link.id)


def test_a_dispatch_settles_them_in_groups_too(client: Any, half: DynamoStore) -> None:
    with counted(client) as calls:
        allocated = half.allocate(OLD, AllocationSlot.WEEKLY, RUN_ID)
    assert all(allocated)
    assert calls["TransactWriteItems"] <= 2
    assert sum(calls.values()) <= len(OLD) + 10  # each allocation is a write of its own
