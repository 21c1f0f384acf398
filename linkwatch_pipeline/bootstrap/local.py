"""The parts of the profile `local`: everything is kept in the home's folder, for the processes of one machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from linkwatch_pipeline.adapters.home import Home
from linkwatch_pipeline.ports import Clock, Metrics, Queue, Store
from linkwatch_pipeline.use_cases.work import LocalOrder


def open_database(home: Home) -> Store:
    from linkwatch_pipeline.adapters.store.sqlite import SqliteStore

    return SqliteStore.open(home.database)


def grouping(store: Store) -> Callable[[], AbstractContextManager[None]]:
    """How calls that wait together share a commit: only a store on this machine's disk gains by it."""
    from linkwatch_pipeline.adapters.store.sqlite import SqliteStore

    return store.grouped if isinstance(store, SqliteStore) else nullcontext


def open_metrics_file(home: Home) -> Metrics:
    from linkwatch_pipeline.adapters.metrics.local import LocalMetrics

    return LocalMetrics(home.metrics_file)


def make_memory_queue(clock: Clock, order: LocalOrder) -> Queue:
    from linkwatch_pipeline.adapters.queue.memory import MemoryQueue

    return MemoryQueue(clock, order=order)
