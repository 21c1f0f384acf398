"""A world: its hosts on loopback, its own certificate authority, its week, and its log."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline_tests.world.address_map import AddressMap, Mapped
from linkwatch_pipeline_tests.world.authority import Authority
from linkwatch_pipeline_tests.world.log import Hit, RequestLog
from linkwatch_pipeline_tests.world.scripts import Script, Site
from linkwatch_pipeline_tests.world.server import Servers


class World(Mapped):
    """See the package. Each host has an address of its own, as on the Internet.

    Args:
        sites: by host name; a mapping of pages stands for a Site of them.
        week: which week it is at first, as an index into the scripts; set `world.week` to change it.
        tell: called with every hit besides the log.
    """

    def __init__(
        self,
        sites: Mapping[str, Site | Mapping[str, Script]],
        *,
        week: int = 0,
        tell: Callable[[Hit], None] | None = None,
    ) -> None:
        self.sites = {host: site if isinstance(site, Site) else Site(site) for host, site in sites.items()}
        self.week = week
        self.log = RequestLog()
        self._tell_also = tell
        self._servers: Servers | None = None
        self._closed_ports: list[socket.socket] = []

    async def settle(self) -> None:
        """Wait (a minute at most) until no connection is open: a hit is logged when the server has noticed its end."""
        assert self._servers is not None
        async with asyncio.timeout(60):
            while self._servers.open_connections:
                await asyncio.sleep(0.002)

    async def __aenter__(self) -> World:
        authority = Authority()
        self._servers = Servers(self.sites, week=lambda: self.week, now=SystemClock().now, tell=self._tell)
        hosts = {}
        try:
            for number, (host, site) in enumerate(self.sites.items()):
                ip = f"127.{10 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"
                hosts[host] = await self._open(host, site, ip, authority)
        except BaseException:
            await self.__aexit__()
            raise
        self._map = AddressMap(hosts=hosts, ca_pem=authority.pem)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._servers is not None
        await self._servers.close()
        for port in self._closed_ports:
            port.close()

    @contextmanager
    def in_thread(self) -> Iterator[World]:
        """The same for code without a loop: the world runs on a loop of its own in a thread."""
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

        async def live() -> None:
            async with self:
                stop = asyncio.Event()
                started.set_result((asyncio.get_running_loop(), stop))
                await stop.wait()

        def run() -> None:
            try:
                asyncio.run(live())
            except BaseException as exc:
                if started.done():
                    raise
                started.set_exception(exc)

        thread = threading.Thread(target=run, name="world", daemon=True)
        thread.start()
        loop, stop = started.result(timeout=60)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(timeout=60)

    def _tell(self, hit: Hit) -> None:
        self.log.hits.append(hit)
        if self._tell_also is not None:
            self._tell_also(hit)

    async def _open(
        self, host: str, site: Site, ip: str, authority: Authority
    ) -> tuple[tuple[str, int], tuple[str, int]]:
        assert self._servers is not None
        if site.down is True:
            return self._closed_port(ip), self._closed_port(ip)
        plain = await self._servers.listen(host, ip, None, "http")
        tls = authority.server_context(host, site.certificate, hello=self._servers.note_hello)
        return plain, await self._servers.listen(host, ip, tls, "https")

    def _closed_port(self, ip: str) -> tuple[str, int]:
        """A port that is ours, so that nobody else opens it, but refuses connections."""
        held = socket.socket()
        held.bind((ip, 0))
        self._closed_ports.append(held)
        return ip, held.getsockname()[1]
