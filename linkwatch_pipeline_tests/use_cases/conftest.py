"""An office that tells owners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline_tests.use_cases.office import Office


@pytest.fixture
def office() -> Iterator[Office]:
    """One with its store, its owners and nothing watched yet."""
    store = SqliteStore.open(Path(":memory:"))
    office = Office(store)
    office.employ()
    yield office
    store.close()


@pytest.fixture
def office_on_disk(tmp_path: Path) -> Iterator[Office]:
    """One whose database file, `linkwatch.sqlite3`, somebody may damage."""
    opened = Office(SqliteStore.open(tmp_path / "linkwatch.sqlite3"))
    opened.employ()
    yield opened
    opened.store.close()
