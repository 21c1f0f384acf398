"""Blocking calls from a coroutine on one thread, so that an embedded store has one writer (`ports.RunBlocking`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


class WriterThread:
    """One thread for all blocking calls of a process; use it as a context manager."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkwatch-store")

    async def __call__(self, call: Callable[[], T], /) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def __enter__(self) -> WriterThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)
