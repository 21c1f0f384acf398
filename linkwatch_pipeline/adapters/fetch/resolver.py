"""Names to addresses: the machine's resolver in threads of its own, or none at all."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import RefusedUrl

# A name whose servers are silent holds a thread for about 30 s, three times as long as its check waits for it. So 20
# checks at once can hold 60, and one more name has to find a free thread still.
MOST_THREADS = 128

Answers = list[tuple[str, int]]


class Resolver(Protocol):
    """Asked once per connection; all of its answers are judged."""

    async def __call__(self, host: str, port: int) -> Answers:
        """The (ip, port) pairs to dial for a host name, best first. Raises OSError if there is none."""
        ...


class SystemResolver:
    """`getaddrinfo`, in threads of its own.

    The loop's default executor has few threads, and a look-up cannot be cancelled: some stuck names would starve all
    others there. The threads are daemons, so that a stuck look-up delays no exit. Each is started when it is needed.
    A name that nobody waits for any more when its turn comes is not looked up.

    Args: look_up: (host, port) -> answers, blocking; another one in tests.
    """

    def __init__(self, *, look_up: Callable[[str, int], Answers] | None = None, threads: int = MOST_THREADS) -> None:
        self._look_up = look_up or _get_address_info
        self._most_threads = threads
        self._threads = 0
        self._unfinished = 0  # look-ups that wait or go on
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    async def __call__(self, host: str, port: int) -> Answers:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answers] = loop.create_future()

        def look_up() -> None:
            if answer.cancelled():
                return
            try:
                found = self._look_up(host, port)
            except Exception as error:  # carried to the caller, whatever it is
                _deliver(loop, _fail_unless_done, answer, error)
            else:
                _deliver(loop, _finish_unless_done, answer, found)

        with self._lock:
            self._unfinished += 1
        self._waiting.put(look_up)
        self._start_thread()
        return await answer

    def close(self) -> None:
        """Let the threads end when their look-ups are done."""
        for _ in range(self._threads):
            self._waiting.put(None)
        self._threads = 0

    def _start_thread(self) -> None:
        if self._threads < min(self._unfinished, self._most_threads):
            self._threads += 1
            threading.Thread(target=self._work, name="linkwatch-resolver", daemon=True).start()

    def _work(self) -> None:
        while (look_up := self._waiting.get()) is not None:
            look_up()
            with self._lock:
                self._unfinished -= 1


async def no_names(host: str, port: int) -> Answers:
    """The resolver of a home that may visit literal addresses only: no name is ever looked up."""
    raise RefusedUrl(Reason.BLOCKED_ADDRESS, f"{host!r} is not one of this home's fixtures")


def _get_address_info(host: str, port: int) -> Answers:
    # The final dot makes the name absolute: no search list of the machine may complete it to an internal one.
    found = socket.getaddrinfo(f"{host}.", port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys((str(address[0]), int(address[1])) for *_, address in found))


def _deliver(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return


def _finish_unless_done(answer: asyncio.Future[Answers], found: Answers) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail_unless_done(answer: asyncio.Future[Answers], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
