"""An Internet without sockets: scripted names and answers, for public addresses that no test may really dial."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, cast

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nguide"


class ScriptedInternet:
    """Resolves and dials by script.

    Args:
        names: host to its answers; a list of lists gives one list per look-up, the last one again and again.
        answers: the raw answers, one per connection; the last one again and again.
        reached: the address that really answers, instead of the one dialled.
    """

    def __init__(
        self,
        names: Mapping[str, Sequence[Any]],
        answers: Sequence[bytes] = (OK,),
        *,
        reached: tuple[str, int] | None = None,
    ) -> None:
        self._names = names
        self._answers = answers
        self._reached = reached
        self.looked_up: list[str] = []
        self.dialled: list[tuple[str, int]] = []
        self.requests: list[bytes] = []

    async def resolver(self, host: str, port: int) -> list[tuple[str, int]]:
        self.looked_up.append(host)
        if host not in self._names:
            raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")
        answers = self._names[host]
        if answers and isinstance(answers[0], list):
            answers = answers[min(self.looked_up.count(host), len(answers)) - 1]
        return [(ip, port) for ip in answers]

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((ip, port))
        reader = asyncio.StreamReader()
        reader.feed_data(self._answers[min(len(self.dialled), len(self._answers)) - 1])
        reader.feed_eof()
        peer = self._reached or (ip, port)
        return reader, cast(asyncio.StreamWriter, _ScriptedWriter(peer, self.requests))


class _ScriptedWriter:
    def __init__(self, peer: tuple[str, int], requests: list[bytes]) -> None:
        self._peer = peer
        self._requests = requests
        self.transport = self

    def write(self, data: bytes) -> None:
        self._requests.append(data)

    async def drain(self) -> None:
        return

    async def start_tls(self, context: ssl.SSLContext, *, server_hostname: str) -> None:
        return

    def get_extra_info(self, name: str) -> Any:
        return self._peer if name == "peername" else None

    def abort(self) -> None:
        return
