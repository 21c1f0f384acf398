"""One thread for blocking calls: in order, together when they wait together, and nobody told before the commit."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.adapters.writer_thread import WriterThread
from linkwatch_pipeline.domain.errors import NotFound, StoreError, StoreUnavailable
from linkwatch_pipeline_tests.builders import a_link

LINKS = [a_link(f"link-{number}", f"https://docs.example.com/{number}") for number in range(5)]


class Groups:
    """Stands where a store's `grouped` does, and writes down what happens."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.happened.append("begin")
        yield
        self.happened.append("commit")


@asynccontextmanager
async def _busy(writer: WriterThread) -> AsyncIterator[None]:
    """Keeps the thread busy with a call of its own until the block ends."""
    began, may_end = threading.Event(), threading.Event()

    def keep_busy() -> None:
        began.set()
        may_end.wait()

    call = asyncio.ensure_future(writer(keep_busy))
    await asyncio.to_thread(began.wait)
    yield
    may_end.set()
    await call


async def _together(writer: WriterThread, calls: list[Callable[[], object]]) -> list[object]:
    """Make calls that all wait while the thread is busy."""
    async with _busy(writer):
        waiting = [asyncio.ensure_future(writer(call)) for call in calls]
        await asyncio.sleep(0)  # now all of them wait
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_calls_that_wait_together_share_one_commit_and_keep_their_order() -> None:
    groups = Groups()

    async def work() -> None:
        with WriterThread(groups) as writer:
            await _together(writer, [partial(groups.happened.append, f"call {number}") for number in range(3)])

    asyncio.run(work())
    assert groups.happened[-5:] == ["begin", "call 0", "call 1", "call 2", "commit"]


def test_nobody_has_a_result_before_the_commit() -> None:
    groups = Groups()

    async def work() -> str:
        with WriterThread(groups) as writer:
            await writer(lambda: None)
            return groups.happened[-1]

    assert asyncio.run(work()) == "commit"


def test_a_call_whose_caller_left_before_its_turn_is_not_made() -> None:
    made: list[str] = []

    async def work() -> None:
        with WriterThread() as writer:
            async with _busy(writer):
                left = asyncio.ensure_future(writer(lambda: made.append("left")))
                await asyncio.sleep(0)
                left.cancel()
            await asyncio.gather(left, return_exceptions=True)

    asyncio.run(work())
    assert made == []


def test_a_call_that_fails_undoes_itself_alone(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")

    async def work() -> list[object]:
        with WriterThread(store.grouped) as writer:
            return await _together(
                writer,
                [
                    lambda: store.save_link(LINKS[0], replaces=None),
                    lambda: store.finish_dispatch("no such run", expected=0, at=LINKS[0].active_since),
                    lambda: store.save_link(LINKS[1], replaces=None),
                ],
            )

    outcomes = asyncio.run(work())
    assert [type(outcome) for outcome in outcomes] == [type(None), NotFound, type(None)]
    store.close()
    opened_anew = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    assert [link.id for link in opened_anew.links()] == ["link-0", "link-1"]
    opened_anew.close()


def test_a_full_disk_in_a_group_fails_every_call_of_it_and_keeps_nothing(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    connection: sqlite3.Connection = store._database._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    large = a_link("large", "https://docs.example.com/large", marker="x" * 500_000)

    async def work() -> list[object]:
        with WriterThread(store.grouped) as writer:
            return await _together(
                writer,
                [
                    lambda: store.save_link(LINKS[0], replaces=None),
                    lambda: store.save_link(large, replaces=None),
                    lambda: store.save_link(LINKS[1], replaces=None),
                ],
            )

    outcomes = asyncio.run(work())
    assert isinstance(outcomes[1], StoreUnavailable)
    kept = [link.id for link in store.links()]
    told = [link.id for link, outcome in zip(LINKS[:2], (outcomes[0], outcomes[2]), strict=True) if outcome is None]
    assert kept == told
    assert all(outcome is None or isinstance(outcome, StoreError) for outcome in outcomes)
    store.close()


@pytest.mark.parametrize("written_before", [0, 1])
def test_a_group_whose_transaction_sqlite_gave_up_is_lost_as_a_whole(tmp_path: Path, written_before: int) -> None:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")

    def give_up() -> None:
        with store._database.transaction() as write:
            write.execute("ROLLBACK")  # what SQLite does by itself when the disk is full or fails

    async def work() -> list[object]:
        before: list[Callable[[], object]] = [lambda: store.save_link(LINKS[0], replaces=None)] * written_before
        with WriterThread(store.grouped) as writer:
            return await _together(writer, [*before, give_up, lambda: store.save_link(LINKS[1], replaces=None)])

    outcomes = asyncio.run(work())
    assert all(isinstance(outcome, StoreError) for outcome in outcomes), outcomes
    assert list(store.links()) == []
    store.save_link(LINKS[2], replaces=None)
    assert [link.id for link in store.links()] == ["link-2"]
    store.close()
