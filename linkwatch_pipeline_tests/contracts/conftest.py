"""The stores under test: one entry an adapter, and every contract test runs on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.ports import Store

# Opens one and the same storage each time it is called. Can be pickled, so that another process may call it.
OpenStore = Callable[[], Store]


def sqlite_storage(folder: Path) -> OpenStore:
    return partial(SqliteStore.open, folder / "linkwatch.sqlite3")


STORES = [pytest.param(sqlite_storage, id="sqlite")]


@pytest.fixture(params=STORES)
def new_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], OpenStore]:
    """Makes empty storage, another one at each call."""
    numbers = count(1)

    def make() -> OpenStore:
        folder = tmp_path / f"storage-{next(numbers)}"
        folder.mkdir()
        return request.param(folder)

    return make


@pytest.fixture
def open_store(new_storage: Callable[[], OpenStore]) -> OpenStore:
    """Opens the test's one storage; who calls it closes the store."""
    return new_storage()


@pytest.fixture
def store(open_store: OpenStore) -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()
