"""The servers of a world: raw asyncio, one connection per request, so that every byte is the script's."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from weakref import WeakKeyDictionary

from linkwatch_pipeline_tests.world.log import Hit
from linkwatch_pipeline_tests.world.scripts import Answer, Request, Site

_PATIENCE = 60.0  # seconds for a request to come
_LOOK_AGAIN = 0.05  # seconds between looks at which week it is


class Servers:
    """Serves sites and tells of every connection.

    Args:
        sites: by host name.
        week: which week it is.
        now: wall clock.
        tell: called with each hit when it has ended.
    """

    def __init__(
        self,
        sites: dict[str, Site],
        *,
        week: Callable[[], int],
        now: Callable[[], datetime],
        tell: Callable[[Hit], None],
    ) -> None:
        self._sites = sites
        self._week = week
        self._now = now
        self._tell = tell
        self._visits: Counter[str] = Counter()
        self._visits_by_week: Counter[tuple[int, str]] = Counter()
        # When TLS conversations began: asyncio tells of them only after the handshake.
        self._hellos: WeakKeyDictionary[ssl.SSLObject, float] = WeakKeyDictionary()
        self._open: Counter[str] = Counter()
        self._servers: list[asyncio.Server] = []
        self._conversations: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, ip: str, tls: ssl.SSLContext | None, scheme: str) -> tuple[str, int]:
        """Serve a host on a free port of an address; the pair."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._converse(host, scheme, reader, writer))
            self._conversations.add(task)
            task.add_done_callback(self._conversations.discard)

        server = await asyncio.start_server(accept, ip, 0, ssl=tls, backlog=1024)
        self._servers.append(server)
        address = server.sockets[0].getsockname()
        return address[0], address[1]

    def note_hello(self, connection: ssl.SSLObject) -> None:
        """A TLS client began to talk."""
        self._hellos[connection] = asyncio.get_running_loop().time()

    @property
    def open_connections(self) -> int:
        """How many conversations go on right now; their hits are not told yet."""
        return self._open.total()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        for server in self._servers:
            server.close()
        for task in list(self._conversations):
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _converse(
        self, host: str, scheme: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        address = writer.get_extra_info("sockname") or ("", 0)
        self._open[host] += 1
        started, at, week = loop.time(), self._now(), self._week()
        tls = writer.get_extra_info("ssl_object")
        started = self._hellos.get(tls, started) if tls is not None else started
        request = Request(host, "", {}, week, 0)
        together, together_all = self._open[host], self._open.total()
        last_write, told = _noting_writes(writer, loop), False

        def tell(ended: float) -> None:
            nonlocal told
            told = True
            self._tell(
                Hit(
                    host=host,
                    address=f"{address[0]}:{address[1]}",
                    scheme=scheme,
                    target=request.target or None,
                    headers=dict(request.headers),
                    week=week,
                    at=at.isoformat(),
                    started=started,
                    ended=ended,
                    together=together,
                    together_all=together_all,
                )
            )

        try:
            # Somebody who resets, or leaves in mid-sentence, is no fault of the server's.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                site = self._sites[host]
                if site.is_down_in(week):
                    writer.transport.abort()
                elif site.greeting is not None:
                    await site.greeting(request, reader, writer)
                else:
                    request = await self._read_request(host, week, reader)
                    answer = site.answer_to(request)
                    if isinstance(answer, Answer):
                        await self._until(answer.from_week, reader)
                        await asyncio.sleep(answer.delay)
                        # Before it can be read: whoever has the answer finds its visit in the log.
                        tell(loop.time())
                        writer.write(answer.to_bytes())
                        await writer.drain()
                    else:
                        await answer(request, reader, writer)
                        # Not now: on a busy machine the client may have read it all and gone long before this line.
                        ended = last_write()
                        tell(loop.time() if ended is None else ended)
        finally:
            if not told:
                tell(loop.time())
            writer.close()
            self._open[host] -= 1

    async def _until(self, week: int, reader: asyncio.StreamReader) -> None:
        """Wait for a week, but not for longer than the client does."""
        while self._week() < week and not reader.at_eof():
            await asyncio.sleep(_LOOK_AGAIN)

    async def _read_request(self, host: str, week: int, reader: asyncio.StreamReader) -> Request:
        async with asyncio.timeout(_PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        target = first.split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
        url = host + target
        visit, visit_this_week = self._visits[url], self._visits_by_week[week, url]
        self._visits[url] += 1
        self._visits_by_week[week, url] += 1
        return Request(host, target, headers, week, visit, visit_this_week)


def _noting_writes(writer: asyncio.StreamWriter, loop: asyncio.AbstractEventLoop) -> Callable[[], float | None]:
    """When the writer was last given something, None if never: nobody can have read all before that moment."""
    last: list[float] = []
    write = writer.write

    def noted(data: bytes | bytearray | memoryview) -> None:
        last[:] = [loop.time()]
        write(data)

    writer.write = noted  # type: ignore[method-assign]
    return lambda: last[0] if last else None
