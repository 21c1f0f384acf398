"""`enqueue` where a queue outlives its processes: one copy of the pending job's message more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.use_cases.enqueue import enqueue
from linkwatch_pipeline_tests.builders import a_link, dispatched
from linkwatch_pipeline_tests.virtual_clock import VirtualClock


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(Path(":memory:"))
    yield opened
    opened.close()


def test_the_message_of_the_pending_job_is_sent(store: SqliteStore) -> None:
    store.save_link(a_link(), replaces=None)
    (job,) = dispatched(store, list(store.links()))
    queue = MemoryQueue(VirtualClock())
    assert enqueue(store, queue, link_id="guide") == job.message
    assert [receipt.job for receipt in queue.receive(limit=10)] == [job.message]


def test_a_malformed_id_is_refused(store: SqliteStore) -> None:
    with pytest.raises(InvalidInput):
        enqueue(store, None, link_id="no/such")
