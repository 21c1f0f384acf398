"""What a table says of its schema, and who may write into it then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.adapters.store.dynamodb_guard import SCHEMA
from linkwatch_pipeline.domain.errors import StaleWrite, StoreUnusable
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.use_cases.move_history import everything
from linkwatch_pipeline_tests.builders import MONDAY, a_link
from linkwatch_pipeline_tests.cloud.tables import StandingClock, store_on

KEY = {"pk": {"S": "SCHEMA"}, "sk": {"S": "SCHEMA"}}
DOCS = Owner(team="docs", address="docs@example.com")


def number_of(client: Any, name: str) -> str | None:
    item = client.get_item(TableName=name, Key=KEY).get("Item")
    return item["version"]["N"] if item is not None else None


def number_it(client: Any, name: str, version: str) -> None:
    client.put_item(TableName=name, Item={**KEY, "version": {"N": version}, "w": {"S": "theirs"}})


def test_the_first_write_says_which_schema_it_is_and_looking_does_not(
    client: Any, name: str, store: DynamoStore
) -> None:
    store.verify()
    assert not store.is_import_unfinished()
    assert list(store.links()) == []
    assert number_of(client, name) is None
    store.put_owner(DOCS)
    assert number_of(client, name) == str(SCHEMA)
    assert list(everything(store)) == [DOCS]


@pytest.mark.parametrize("version", [{"N": "0"}, {"N": "-1"}, {"N": "1.5"}, {"S": "2"}])
def test_a_number_that_no_schema_has_is_refused_and_stays(
    client: Any, name: str, store: DynamoStore, version: dict[str, str]
) -> None:
    client.put_item(TableName=name, Item={**KEY, "version": version, "w": {"S": "theirs"}})
    for use in (store.verify, store.is_import_unfinished, lambda: store.put_owner(DOCS)):
        with pytest.raises(StoreUnusable, match="version"):
            use()
    assert client.get_item(TableName=name, Key=KEY)["Item"]["version"] == version


@pytest.mark.parametrize("version", [None, "1"])
def test_a_table_of_an_earlier_schema_gets_the_number_with_its_next_write(
    client: Any, name: str, version: str | None
) -> None:
    store_on(client, name).save_link(a_link(), replaces=None)
    client.delete_item(TableName=name, Key=KEY)
    if version is not None:
        number_it(client, name, version)
    store_on(client, name).put_owner(DOCS)
    assert number_of(client, name) == str(SCHEMA)


def test_a_table_of_a_newer_schema_is_refused_and_left_alone(client: Any, name: str, store: DynamoStore) -> None:
    number_it(client, name, str(SCHEMA + 1))
    before = client.scan(TableName=name)["Items"]
    refused = f"'{name}' has schema version {SCHEMA + 1}, written by a newer linkwatch; this one knows version {SCHEMA}"
    for use in (
        lambda: store.put_owner(DOCS),
        lambda: store.save_link(a_link(), replaces=None),
        lambda: store.acquire_host("h", token="t", job_id="0:guide", now=MONDAY, skew=timedelta(0)),
        lambda: store.restore([DOCS], source="one"),
        store.verify,
        store.is_import_unfinished,
    ):
        with pytest.raises(StoreUnusable, match=refused):
            use()
    assert client.scan(TableName=name)["Items"] == before


def test_a_number_that_grows_while_a_process_runs_is_seen_within_a_minute(client: Any, name: str) -> None:
    class Passing(StandingClock):
        seconds = 0.0

        def monotonic(self) -> float:
            return Passing.seconds

    store = store_on(client, name, clock=Passing())
    store.put_owner(DOCS)
    number_it(client, name, str(SCHEMA + 1))
    Passing.seconds = 61.0
    with pytest.raises(StoreUnusable, match="newer linkwatch"):
        store.put_owner(DOCS)


def test_one_request_a_minute_looks_for_both_marks(client: Any, name: str, store: DynamoStore) -> None:
    store.put_owner(DOCS)
    asked: list[str] = []
    client.meta.events.register("before-call.dynamodb", lambda model, **_: asked.append(model.name))
    other = store_on(client, name)
    for _ in range(2):
        other.put_owner(DOCS)
    assert asked == ["GetItem", "BatchGetItem", "PutItem", "GetItem", "PutItem"]


def test_a_number_that_nobody_can_read_is_named(client: Any, name: str, store: DynamoStore) -> None:
    client.put_item(TableName=name, Item={**KEY, "version": {"S": "two"}})
    with pytest.raises(StoreUnusable, match=r"SCHEMA / SCHEMA .*version is not a whole number"):
        store.put_owner(DOCS)


def test_a_table_with_nothing_but_a_number_takes_a_history(client: Any, name: str, store: DynamoStore) -> None:
    number_it(client, name, str(SCHEMA))
    assert store.restore([DOCS], source="one") == 1
    assert list(everything(store)) == [DOCS]


def test_a_history_in_an_empty_table_has_a_number(client: Any, name: str, store: DynamoStore) -> None:
    store.restore([DOCS], source="one")
    assert number_of(client, name) == str(SCHEMA)


def test_a_table_that_takes_no_history_gets_no_number_by_that(client: Any, name: str, store: DynamoStore) -> None:
    store.put_owner(DOCS)
    client.delete_item(TableName=name, Key=KEY)
    with pytest.raises(StaleWrite, match="not empty"):
        store.restore([DOCS], source="one")
    assert number_of(client, name) is None
