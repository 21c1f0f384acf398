"""Where the places of a link stand in a table, and that a check leaves them alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.domain.errors import StaleWrite, StoreError, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.links import AllocationSlot, Place
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, an_observation
from linkwatch_pipeline_tests.cloud.calls import Fault
from linkwatch_pipeline_tests.cloud.fault_proxy import fault_proxy
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import PATIENT, StandingClock, store_on
from linkwatch_pipeline_tests.cloud.write_units import write_units_per_check

KEY = {"pk": {"S": "LINK#guide"}, "sk": {"S": "STATE"}}


def placed(how_many: int, folder: str = "pages") -> Any:
    return a_link(places=tuple(Place(file=f"{folder}/about-us/page-{n:05}.md", line=7) for n in range(how_many)))


def stored(client: Any, name: str) -> Any:
    return client.get_item(TableName=name, Key=KEY)["Item"]


def parts(client: Any, name: str) -> dict[str, list[str]]:
    """The parts of `guide`: by their name, in order."""
    found: dict[str, list[str]] = {}
    for item in client.scan(TableName=name)["Items"]:
        if item["sk"]["S"].startswith("PART#"):
            _, called, place = item["sk"]["S"].split("#")
            found.setdefault(called, []).append(place)
    return {called: sorted(places) for called, places in found.items()}


def as_an_earlier_linkwatch_wrote_it(client: Any, name: str, how_many: int) -> Any:
    """An item with all places inside."""
    link = placed(how_many)
    store_on(client, name).save_link(replace(link, places=()), replaces=None)
    inside = "[" + ",".join(f'["{place.file}",7]' for place in link.places) + "]"
    client.put_item(TableName=name, Item={**stored(client, name), "places": {"S": inside}})
    return link


def test_few_places_stand_in_the_links_item_and_many_beside_it(client: Any, name: str, store: DynamoStore) -> None:
    store.save_link(few := placed(3), replaces=None)
    assert "page-00002" in stored(client, name)["places"]["S"]
    assert parts(client, name) == {}
    store.save_link(placed(6_000), replaces=few)
    item = stored(client, name)
    assert "places" not in item
    assert len(str(item)) < 1_000
    assert parts(client, name) == {item["parts"]["S"]: [f"{n:06}" for n in range(4)]}


def test_what_nothing_leads_to_any_more_is_deleted(client: Any, name: str, store: DynamoStore) -> None:
    store.save_link(first := placed(50), replaces=None)
    store.save_link(second := placed(50, "moved"), replaces=first)
    assert list(parts(client, name)) == [stored(client, name)["parts"]["S"]]
    store.save_link(replace(second, places=()), replaces=second)
    assert parts(client, name) == {}


def test_a_check_neither_reads_nor_writes_them_unless_the_state_changes(client: Any, name: str) -> None:
    store = store_on(client, name)
    store.save_link(placed(6_000), replaces=None)
    asked: list[str] = []
    for operation in ("BatchGetItem", "TransactWriteItems", "BatchWriteItem", "PutItem", "Query"):
        client.meta.events.register(
            f"before-parameter-build.dynamodb.{operation}", lambda params, **_: asked.append(str(params))
        )
    assert store.get_link("guide", brief=True) == a_link()
    store.allocate([a_link()], AllocationSlot.WEEKLY, RUN_ID)
    store.record(an_observation(a_link(), sequence=1), default_confirm=1, now=MONDAY)
    assert [one for one in asked if "PART#" in one] == []
    store.record(an_observation(a_link(), 404, sequence=2), default_confirm=1, now=MONDAY)
    assert len([one for one in asked if "PART#" in one]) == 1


@pytest.mark.parametrize("how_many", [1, 3_000])
def test_a_table_of_an_earlier_linkwatch_is_read(client: Any, name: str, store: DynamoStore, how_many: int) -> None:
    link = as_an_earlier_linkwatch_wrote_it(client, name, how_many)
    assert store.get_link("guide") == link
    assert list(store.links()) == [link]
    assert store.get_link("guide", brief=True) == a_link()


@pytest.mark.parametrize("change", ["check", "allocation", "acknowledgement"])
def test_what_it_has_inside_moves_with_the_next_change(client: Any, name: str, store: DynamoStore, change: str) -> None:
    link = as_an_earlier_linkwatch_wrote_it(client, name, 3_000)
    if change == "check":
        store.record(an_observation(link, 404), default_confirm=1, now=MONDAY)
        [notice] = store.notices()
        assert (len(notice.places), notice.further_places) == (20, 2_980)
    elif change == "allocation":
        store.allocate([link], AllocationSlot.WEEKLY, RUN_ID)
    else:
        store.save_link(replace(link, marker="x"), replaces=link)
    assert "places" not in stored(client, name)
    [after_it] = store.links()
    assert after_it.places == link.places


def test_a_link_without_further_places_and_an_old_notice_are_what_they_were(
    client: Any, name: str, store: DynamoStore
) -> None:
    store.save_link(placed(1), replaces=None)
    store.record(an_observation(a_link(), 404), default_confirm=1, now=MONDAY)
    [notice] = store.notices()
    [item] = [item for item in client.scan(TableName=name)["Items"] if item["sk"]["S"] == "guide:1"]
    client.put_item(TableName=name, Item={key: value for key, value in item.items() if key != "further_places"})
    assert list(store.notices()) == [notice]


class PowerCut(BaseException):
    """The process is gone: nothing it had in hand is done any more."""


def test_a_writer_that_dies_leaves_the_old_places_and_what_it_left_goes_a_day_later(client: Any, name: str) -> None:
    store = store_on(client, name)
    store.save_link(first := placed(50), replaces=None)
    before = parts(client, name)

    def cut(**_: Any) -> None:
        raise PowerCut

    client.meta.events.register("before-call.dynamodb.TransactWriteItems", cut)
    client.meta.events.register("before-call.dynamodb.PutItem", cut)
    with pytest.raises(PowerCut):
        store.save_link(placed(50, "moved"), replaces=first)
    client.meta.events.unregister("before-call.dynamodb.TransactWriteItems", cut)
    client.meta.events.unregister("before-call.dynamodb.PutItem", cut)
    assert store.get_link("guide") == first
    assert len(parts(client, name)) == len(before) + 1
    store.save_link(second := placed(50, "second"), replaces=first)
    assert len(parts(client, name)) == 2  # whose it is, and whether they still write, nobody can know yet
    later = store_on(client, name, clock=StandingClock(MONDAY + timedelta(days=1, seconds=1)))
    later.save_link(placed(50, "third"), replaces=second)
    assert list(parts(client, name)) == [stored(client, name)["parts"]["S"]]


def test_who_was_overtaken_leaves_nothing(client: Any, name: str, store: DynamoStore) -> None:
    other = store_on(client, name)
    store.save_link(first := placed(50), replaces=None)
    begun = iter([True])

    def overtake(**_: Any) -> None:
        if next(begun, False):
            other.save_link(placed(50, "theirs"), replaces=first)

    client.meta.events.register("before-call.dynamodb.BatchWriteItem", overtake)
    with pytest.raises(StaleWrite, match="guide"):
        store.save_link(placed(50, "mine"), replaces=first)
    assert store.get_link("guide") == placed(50, "theirs")
    assert list(parts(client, name)) == [stored(client, name)["parts"]["S"]]


def test_who_reads_while_they_are_replaced_reads_them_as_they_were_or_are(
    client: Any, name: str, store: DynamoStore
) -> None:
    other, begun = store_on(client, name), iter([True])
    store.save_link(first := placed(50), replaces=None)

    def replace_them(**_: Any) -> None:
        if next(begun, False):
            other.save_link(placed(50, "moved"), replaces=first)

    client.meta.events.register("before-call.dynamodb.BatchGetItem", replace_them)
    assert store.get_link("guide") == placed(50, "moved")


def test_who_reads_while_many_are_replaced_and_their_writer_cannot_tidy_reads_them_as_they_are(
    ministack: Cloud, client: Any, name: str, store: DynamoStore
) -> None:
    others_client = ministack.client("dynamodb", config=PATIENT)
    other, begun, committed = store_on(others_client, name), iter([True]), []
    store.save_link(first := placed(50), replaces=None)
    new = [(a_link(f"new-{n}", f"https://h{n}.example.com/"), None) for n in range(40)]

    def note(params: dict[str, Any], **_: Any) -> None:
        if params["Item"].get("state") == {"S": "committed"}:
            committed.append(True)

    def fail_afterwards(**_: Any) -> None:
        if committed:
            raise StoreUnavailable("the table is busy")

    others_client.meta.events.register("before-parameter-build.dynamodb.PutItem", note)
    others_client.meta.events.register("before-call.dynamodb.TransactWriteItems", fail_afterwards)

    def replace_them(**_: Any) -> None:
        if next(begun, False):
            other.save_registry(links=[(placed(50, "moved"), first), *new])
            assert "pending" in stored(client, name)

    client.meta.events.register("before-call.dynamodb.BatchGetItem", replace_them)
    assert store.get_link("guide") == placed(50, "moved")


def test_parts_that_are_lost_are_said_to_be(client: Any, name: str, store: DynamoStore) -> None:
    store.save_link(placed(50), replaces=None)
    called = stored(client, name)["parts"]["S"]
    client.delete_item(TableName=name, Key={"pk": {"S": "LINK#guide"}, "sk": {"S": f"PART#{called}#000000"}})
    with pytest.raises(StoreUnusable, match=r"LINK#guide / STATE .* names parts that are not there.* point-in-time"):
        list(store.links())
    assert store.get_link("guide", brief=True) == a_link()


def damage_the_part(client: Any, name: str, field: str) -> None:
    key = {"pk": KEY["pk"], "sk": {"S": f"PART#{stored(client, name)['parts']['S']}#000000"}}
    part = client.get_item(TableName=name, Key=key)["Item"]
    client.put_item(TableName=name, Item={each: value for each, value in part.items() if each != field})


def test_a_part_without_its_text_is_named(client: Any, name: str, store: DynamoStore) -> None:
    store.save_link(placed(50), replaces=None)
    damage_the_part(client, name, "text")
    with pytest.raises(StoreUnusable, match=rf"LINK#guide / PART#.*'{name}' is damaged \(text is missing\)"):
        store.get_link("guide")


def test_a_part_whose_age_nobody_knows_hinders_no_change(client: Any, name: str, store: DynamoStore) -> None:
    store.save_link(first := placed(50), replaces=None)
    damage_the_part(client, name, "made_at")
    store.save_link(placed(50, "moved"), replaces=first)
    assert store.get_link("guide") == placed(50, "moved")


def test_large_links_of_an_earlier_linkwatch_move_in_transactions_that_are_small_enough(
    client: Any, name: str, store: DynamoStore
) -> None:
    links = [a_link(f"link-{n:02}", f"https://h{n}.example.com/") for n in range(10)]
    store.save_registry(links=[(link, None) for link in links])
    inside = "[" + ",".join(f'["pages/about-us/page-{n:05}.md",7]' for n in range(9_000)) + "]"
    for link in links:
        key = {"pk": {"S": f"LINK#{link.id}"}, "sk": {"S": "STATE"}}
        item = client.get_item(TableName=name, Key=key)["Item"]
        client.put_item(TableName=name, Item={**item, "places": {"S": inside}})
    sizes: list[int] = []

    def weigh(params: dict[str, Any], **_: Any) -> None:
        sizes.append(sum(len(str(each["Put"]["Item"])) for each in params["TransactItems"] if "Put" in each))

    client.meta.events.register("before-parameter-build.dynamodb.TransactWriteItems", weigh)
    old = list(store.links())
    assert sum(len(link.places) for link in old) == 10 * 9_000
    store.save_registry(links=[(replace(link, marker="x"), link) for link in old])
    assert 2_000_000 < max(sizes) < 3_200_000
    assert list(store.links()) == [replace(link, marker="x") for link in old]
    assert not [item for item in client.scan(TableName=name)["Items"] if "places" in item or "pending" in item]


@pytest.mark.parametrize("many", [1, 40])
def test_who_was_refused_leaves_nothing(client: Any, name: str, store: DynamoStore, many: int) -> None:
    store.save_link(first := placed(50), replaces=None)
    before = parts(client, name)

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ValidationException", "Message": "not like that"}}, "Write")

    new = [(a_link(f"new-{n}", f"https://h{n}.example.com/"), None) for n in range(many - 1)]
    event = f"before-call.dynamodb.{'TransactWriteItems' if new else 'PutItem'}"
    client.meta.events.register(event, refuse)
    with pytest.raises(StoreError, match="not like that"):
        store.save_registry(links=[(placed(50, "moved"), first), *new])
    client.meta.events.unregister(event, refuse)
    assert parts(client, name) == before
    assert store.get_link("guide") == first


def test_parts_stay_that_may_be_named_though_nobody_heard_of_it(ministack: Cloud, client: Any, name: str) -> None:
    with fault_proxy(ministack) as proxy:
        writer = store_on(proxy.cloud.client("dynamodb", config=PATIENT), name, budget=timedelta(seconds=0.2))
        writer.save_link(first := placed(50), replaces=None)
        proxy.begin(lambda call: Fault.CUT_AFTER if call.operation == "PutItem" else None)
        with pytest.raises(StoreUnavailable):
            writer.save_link(placed(50, "moved"), replaces=first)
    assert store_on(client, name).get_link("guide") == placed(50, "moved")


def test_a_check_costs_the_same_however_many_places_its_link_has(client: Any, store: DynamoStore) -> None:
    mean = write_units_per_check(client, store, links=50, hosts=12, places=600)
    assert 12 <= mean <= 12.6, mean
