"""The stores under test: one entry an adapter, and every contract test runs on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.moto_cloud import AMAZON, moto_storage
from linkwatch_pipeline_tests.cloud.tables import make_table
from linkwatch_pipeline_tests.cloud.tables import open_store as open_dynamo
from linkwatch_pipeline_tests.contracts.spoiling import spoil_item, spoil_row

# Opens one and the same storage each time it is called. Can be pickled, so that another process may call it.
OpenStore = Callable[[], Store]


@dataclass(frozen=True)
class Adapter:
    """A kind of storage.

    Args:
        new: makes empty storage, given the running test and an empty folder.
        spoil: damages a record in the storage that opens so (`spoiling`).
        examples: how many stories the state machine plays on it outside campaigns; 0 for none.
        many: more than it, or the adapter, takes or reads at once.
        beyond: tests that it cannot run, by a part of their name.
        outside_campaigns: the only tests that it runs then, by a part of their name; None for all.
    """

    new: Callable[[pytest.FixtureRequest, Path], OpenStore]
    spoil: Callable[..., None]
    examples: int
    many: int
    beyond: tuple[str, ...] = ()
    outside_campaigns: tuple[str, ...] | None = None


def sqlite_storage(request: pytest.FixtureRequest, folder: Path) -> OpenStore:
    # However slow a disk is: who waits for a lock is not in turn, and others may get it many times before.
    return partial(SqliteStore.open, folder / "linkwatch.sqlite3", busy_timeout=timedelta(seconds=60))


def dynamodb_storage(request: pytest.FixtureRequest, folder: Path) -> OpenStore:
    cloud: Cloud = request.getfixturevalue("ministack")
    return partial(open_dynamo, cloud, make_table(cloud))


def spoil_sqlite(opens: partial[Store], table: str, key: str, **fields: Any) -> None:
    spoil_row(opens.args[0], table, key, **fields)


def spoil_dynamodb(opens: partial[Store], table: str, key: str, **fields: Any) -> None:
    *cloud, name = opens.args
    spoil_item((cloud[0] if cloud else AMAZON).client("dynamodb"), name, table, key, **fields)


STORES = {
    "sqlite": Adapter(sqlite_storage, spoil_sqlite, examples=40, many=1203),
    "dynamodb": Adapter(dynamodb_storage, spoil_dynamodb, examples=3, many=203),
    # Pages end at 1 MB there, as they do at Amazon. It loses writes under threads, lives in one process, and copies
    # the table for each transaction.
    "moto": Adapter(
        moto_storage,
        spoil_dynamodb,
        examples=0,
        many=0,
        outside_campaigns=("TestReadingHistory", "test_store_outbox.py::TestListing", "links_by_host", "classic"),
        beyond=(
            "process",
            "longer_than_any_page",
            "SavingManyAtOnce",
            "orders_of_calls",
            "order_of_calls",
            "interrupted",
        ),
    ),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    beyond = [item for item in items if _is_beyond(item)]
    config.hook.pytest_deselected(items=beyond)
    items[:] = [item for item in items if item not in beyond]
    for item in items:
        chosen = adapter.outside_campaigns if (adapter := _adapter_of(item)) is not None else None
        if chosen is not None and not any(part in item.nodeid for part in chosen):
            item.add_marker(pytest.mark.campaign)


def _is_beyond(item: pytest.Item) -> bool:
    adapter = _adapter_of(item)
    return adapter is not None and any(part in item.nodeid for part in adapter.beyond)


def _adapter_of(item: pytest.Item) -> Adapter | None:
    return STORES.get(str(getattr(getattr(item, "callspec", None), "params", {}).get("new_storage")))


@pytest.fixture(params=STORES)
def new_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], OpenStore]:
    """Makes empty storage, another one at each call."""
    numbers = count(1)

    def make() -> OpenStore:
        folder = tmp_path / f"storage-{next(numbers)}"
        folder.mkdir()
        return STORES[request.param].new(request, folder)

    return make


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> int:
    """How many stories the state machine plays on this adapter."""
    return STORES[request.node.callspec.params["new_storage"]].examples


@pytest.fixture
def many(request: pytest.FixtureRequest) -> int:
    """More than any page of this adapter holds."""
    return STORES[request.node.callspec.params["new_storage"]].many


@pytest.fixture
def open_store(new_storage: Callable[[], OpenStore]) -> OpenStore:
    """Opens the test's one storage; who calls it closes the store."""
    return new_storage()


@pytest.fixture
def spoil(request: pytest.FixtureRequest, open_store: OpenStore) -> Callable[..., None]:
    """Damages a record in the test's storage: `spoil("links", "guide", state="odd")`."""
    return partial(STORES[request.node.callspec.params["new_storage"]].spoil, open_store)


@pytest.fixture
def store(open_store: OpenStore) -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()
