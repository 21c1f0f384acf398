"""A world: its hosts on loopback, its own certificate authority, its week, and its log."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import trustme

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy
from linkwatch_pipeline_tests.world.address_map import AddressMap
from linkwatch_pipeline_tests.world.log import Hit, RequestLog
from linkwatch_pipeline_tests.world.scripts import Site
from linkwatch_pipeline_tests.world.server import Servers

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class World:
    """See the package. Addresses are 127.(10 + block).x.y, one per host, so that hosts are distinct as on the Internet.

    Args:
        sites: by host name; a mapping of pages stands for a Site of them.
        week: which week it is at first, as an index into the scripts; set `world.week` to change it.
        tell: called with every hit besides the log.
    """

    def __init__(
        self,
        sites: Mapping[str, Site | Mapping[str, int]],
        *,
        week: int = 0,
        tell: Callable[[Hit], None] | None = None,
    ) -> None:
        self.sites = {host: site if isinstance(site, Site) else Site(site) for host, site in sites.items()}
        self.week = week
        self.log = RequestLog()
        self._tell_also = tell
        self._authority: _Authority | None = None
        self._servers: Servers | None = None
        self._closed_ports: list[socket.socket] = []
        self._map: AddressMap | None = None

    async def __aenter__(self) -> World:
        self._authority = _Authority()
        self._servers = Servers(self.sites, week=lambda: self.week, now=SystemClock().now, tell=self._tell)
        hosts = {}
        for number, (host, site) in enumerate(self.sites.items()):
            hosts[host] = await self._open(host, site, f"127.{10 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}")
        self._map = AddressMap(hosts=hosts, ca_pem=self._authority.pem)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._servers is not None
        await self._servers.close()
        for port in self._closed_ports:
            port.close()

    @contextmanager
    def in_thread(self) -> Iterator[World]:
        """The same for code without a loop: the world runs on a loop of its own in a thread."""
        ready: asyncio.Future[None] | None
        started = threading.Event()
        failed: list[BaseException] = []
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()

        async def live() -> None:
            try:
                async with self:
                    started.set()
                    await stop.wait()
            except BaseException as exc:
                failed.append(exc)
                raise
            finally:
                started.set()

        thread = threading.Thread(target=lambda: asyncio.run(live()), name="world", daemon=True)
        thread.start()
        started.wait(30)
