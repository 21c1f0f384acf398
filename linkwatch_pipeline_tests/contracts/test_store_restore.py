"""What every store promises about taking over the records of another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import ImportUnfinished, StaleWrite
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.ports import Store, StoredRecord
from linkwatch_pipeline.use_cases.move_history import everything
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.contracts.histories import live_through

OpenStore = Callable[[], Store]


@pytest.fixture(scope="module")
def history() -> list[StoredRecord]:
    """All that a store holds after five weeks."""
    store = SqliteStore.open(Path(":memory:"))
    live_through(store, weeks=5, links=6)
    records = list(everything(store))
    store.close()
    return records


def test_the_history_has_records_of_every_kind(history: list[StoredRecord]) -> None:
    assert {type(record).__name__ for record in history} == {
        "Owner", "Link", "Run", "JobRecord", "HostChain", "HostRecord", "Observation", "Transition", "Notice",
        "Mute", "ExportedWeek",
    }  # fmt: skip


def test_what_is_put_into_an_empty_store_is_what_it_holds(store: Store, history: list[StoredRecord]) -> None:
    assert store.restore(iter(history), source="one") == len(history)
    assert list(everything(store)) == history


def test_life_goes_on_where_it_was(store: Store, history: list[StoredRecord]) -> None:
    store.restore(history, source="one")
    before = len(list(store.observations()))
    live_through(store, weeks=1, links=6, first=5)
    assert len(list(store.observations())) == before + 6
    assert [run.run_id for run in store.runs(open_only=True)] == []
    (notice, *_) = store.notices(unsettled_only=True)
    assert store.update_notice(replace(notice, release_at=notice.created_at), replaces=notice)
    assert store.claim_notice(notice.transition_id, by="me", now=notice.created_at + timedelta(days=1)) is not None
    assert list(store.notices(link_id=notice.link_id, unsettled_only=True))


def test_a_store_that_holds_anything_takes_nothing(store: Store, history: list[StoredRecord]) -> None:
    store.put_owner(Owner(team="docs", address="docs@example.com"))
    before = list(everything(store))
    with pytest.raises(StaleWrite, match="not empty"):
        store.restore(history, source="one")
    assert list(everything(store)) == before


def test_a_trial_leaves_nothing_in_an_empty_store(store: Store, history: list[StoredRecord]) -> None:
    store.verify()
    store.restore(history, source="trial")
    assert list(everything(store)) == history
    store.verify()


def test_a_second_history_is_not_mixed_into_the_first(store: Store, history: list[StoredRecord]) -> None:
    store.restore(history, source="one")
    for source in ("one", "two"):
        with pytest.raises(StaleWrite, match="not empty"):
            store.restore(history, source=source)
    assert list(everything(store)) == history


class PowerCut(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("after_records", [0, 1, 40, 10_000])
def test_an_interrupted_restore_is_begun_again(
    open_store: OpenStore, history: list[StoredRecord], after_records: int
) -> None:
    def cut() -> Iterator[StoredRecord]:
        yield from islice(history, after_records)
        raise PowerCut

    first = open_store()
    with pytest.raises(PowerCut):
        first.restore(cut(), source="one")
    first.close()
    second = open_store()
    try:
        left = list(everything(second))
        if second.is_import_unfinished():
            with pytest.raises(ImportUnfinished, match=r"import-history.* again with the same file"):
                second.put_owner(Owner(team="sre", address="sre@example.com"))
            with pytest.raises(StaleWrite, match="part of another history"):
                second.restore(history, source="two")
        else:
            assert left == []
        assert second.restore(history, source="one") == len(history)
        assert list(everything(second)) == history
        assert not second.is_import_unfinished()
        second.put_owner(Owner(team="sre", address="sre@example.com"))
    finally:
        second.close()


def test_hosts_come_in_host_order(store: Store) -> None:
    assert list(store.hosts()) == []
    for host in ("b.example.com", "a-b.example.com", "a.example.com"):
        store.acquire_host(host, token="t", job_id="0:x", now=MONDAY, skew=timedelta(0))
    assert [record.host for record in store.hosts()] == ["a-b.example.com", "a.example.com", "b.example.com"]
