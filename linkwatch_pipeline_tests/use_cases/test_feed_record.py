"""Feeding observations without HTTP: what every door, not only the command line, can rely on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.feed_record import Fed, feed_record
from linkwatch_pipeline_tests.builders import MONDAY, URL, after


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    yield opened
    opened.close()


def fed(**given: Any) -> Fed:
    return Fed(**{"link_id": "guide", "url": URL, "sequence": 0, "status": 200, **given})


@pytest.mark.parametrize("sequence", [-1, True, 1.0, "1", None])
def test_a_sequence_that_is_no_whole_number_is_refused_and_no_link_created(store: Store, sequence: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a sequence"):
        feed_record(store, fed(sequence=sequence), default_confirm=1, now=MONDAY)
    assert list(store.links()) == []


def test_a_repetition_at_another_time_and_in_another_spelling_is_a_duplicate(store: Store) -> None:
    first = feed_record(store, fed(), default_confirm=1, now=MONDAY)
    again = feed_record(
        store, fed(url=URL.replace("https://docs", "HTTPS://DOCS")), default_confirm=1, now=after(days=1)
    )
    assert (first.recorded.kind, again.recorded.kind) == (RecordKind.APPLIED, RecordKind.DUPLICATE)
    assert [o.observed_at for o in store.observations()] == [MONDAY]


def test_the_setting_for_all_links_confirms(store: Store) -> None:
    assert feed_record(store, fed(status=404), default_confirm=2, now=MONDAY).recorded.transition is None
    second = feed_record(store, fed(status=404, sequence=1), default_confirm=2, now=MONDAY)
    assert second.recorded.transition is not None
