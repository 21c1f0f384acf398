"""The network under one request: resolve once, judge every answer, dial what was judged, count every byte.

httpcore takes the TLS host name from the URL and not from what was dialled, so the certificate is still the name's.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any

import httpcore

from linkwatch_pipeline.adapters.fetch.policy import Policy
from linkwatch_pipeline.adapters.fetch.resolver import Answers, Resolver
from linkwatch_pipeline.domain.fetching import MAX_WIRE_BYTES
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import RefusedUrl

Dial = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

MOST_ADDRESSES = 3  # dialled in turn
CONNECT_PATIENCE = timedelta(seconds=4)  # per address
_HTTP_BEGINS = b"HTTP/"
# The machine is out of something: that is ours, not the host's.
_OUR_FAULT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
# OpenSSL's X509_V_ERR_* codes.
_CERT_EXPIRED = 10
_CERT_OTHER_NAME = (62, 64)
_TELLING = (Reason.INTERNAL, Reason.CONNECTION_REFUSED, Reason.CONNECTION_RESET, Reason.TIMEOUT)


class NetworkTrouble(Exception):
    """The conversation could not be held; `reason` is what an observation says."""

    def __init__(self, reason: Reason, problem: str) -> None:
        super().__init__(f"{reason}: {problem}")
        self.reason = reason


class WireBudgetSpent(Exception):
    """Nothing more may be received: the peer sent as much as one request allows, or all that is wanted has come."""


class Wire:
    """What came over one connection: bytes received (TLS taken off), and whether the peer ended it."""

    def __init__(self, budget: int = MAX_WIRE_BYTES) -> None:
        self.received = 0
        self.ended = False
        self._budget = budget
        self._head = b""

    @property
    def room(self) -> int:
        return self._budget - self.received

    def close(self) -> None:
        """Take nothing more: the next read is refused."""
        self._budget = self.received

    def take(self, data: bytes) -> None:
        """Charge received bytes. Raises NetworkTrouble if they do not begin like HTTP/1."""
        self.received += len(data)
        self.ended = not data
        if len(self._head) < len(_HTTP_BEGINS):
            # Told at once: a banner of another protocol often ends in silence, not in an error.
            self._head += data[: len(_HTTP_BEGINS) - len(self._head)]
            if not _HTTP_BEGINS.startswith(self._head):
                raise NetworkTrouble(Reason.PROTOCOL, "the answer does not begin like HTTP/1")


class GuardedStream(httpcore.AsyncNetworkStream):
    """One connection. Closing it aborts: no draining, no waiting for TLS to say goodbye."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wire: Wire) -> None:
        self._reader = reader
        self._writer = writer
        self._wire = wire

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._wire.room <= 0:
            raise WireBudgetSpent
        try:
            data = await self._reader.read(min(max_bytes, self._wire.room))
        except ssl.SSLError as exc:
            raise NetworkTrouble(_tls_reason(exc), str(exc)) from exc
        except OSError as exc:
            raise NetworkTrouble(_network_reason(exc), str(exc)) from exc
        self._wire.take(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self._writer.write(buffer)
            await self._writer.drain()
        except OSError as exc:
            # httpcore then reads: a server may answer and close before it has heard everything.
            raise httpcore.WriteError(str(exc)) from exc

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except (ssl.SSLError, ssl.CertificateError) as exc:
            raise NetworkTrouble(_tls_reason(exc), str(exc)) from exc
        except OSError as exc:
            # An end without a number is an orderly one: the peer read our greeting and did not agree on TLS.
            raise NetworkTrouble(Reason.TLS if exc.errno is None else _network_reason(exc), str(exc)) from exc
        return self

    async def aclose(self) -> None:
        self.abort()

    def abort(self) -> None:
        """Drop the connection now."""
        self._writer.transport.abort()

    def get_extra_info(self, info: str) -> Any:
        return self._writer.get_extra_info(info)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """The network of exactly one request. `stream` is its connection once there is one, `wire` what came over it.

    Args:
        dial: opens a TCP connection to a literal address, as `asyncio.open_connection` does.
    """

    def __init__(self, policy: Policy, resolver: Resolver, dial: Dial) -> None:
        self._policy = policy
        self._resolver = resolver
        self._dial = dial
        self.wire = Wire()
        self.stream: GuardedStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        answers = await self._resolve(host, port)
        for address in answers:  # one bad answer among good ones is a trap, so all are judged before any is dialled
            self._policy.judge_address(*address)
        self.stream = await self._connect(_in_turns(answers)[:MOST_ADDRESSES])
        return self.stream

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise RefusedUrl(Reason.BLOCKED_ADDRESS, "a socket file is not a public address")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def abort(self) -> None:
        """Drop the connection, if there is one."""
        if self.stream is not None:
            self.stream.abort()

    async def _resolve(self, host: str, port: int) -> Answers:
        try:
            ip_address(host)
        except ValueError:
            pass
        else:
            return [(host, port)]
        try:
            answers = await self._resolver(host, port)
        except (OSError, UnicodeError) as exc:
            raise NetworkTrouble(Reason.DNS, f"{host} cannot be resolved: {exc}") from exc
        if not answers:
            raise NetworkTrouble(Reason.DNS, f"{host} has no address")
        return answers

    async def _connect(self, addresses: Answers) -> GuardedStream:
        troubles = []
        for ip, port in addresses:
            try:
                async with asyncio.timeout(CONNECT_PATIENCE.total_seconds()):
                    reader, writer = await self._dial(ip, port)
            except OSError as exc:
                troubles.append(NetworkTrouble(_network_reason(exc, connecting=True), f"{ip} port {port}: {exc}"))
                continue
            stream = GuardedStream(reader, writer, self.wire)
            self._check_peer(stream, ip, port)
            return stream
        raise min(troubles, key=lambda trouble: _TELLING.index(trouble.reason))

    def _check_peer(self, stream: GuardedStream, ip: str, port: int) -> None:
        peer = stream.get_extra_info("peername")
        if peer is None:  # it was gone before it could be asked who it is
            stream.abort()
            raise NetworkTrouble(Reason.CONNECTION_RESET, f"{ip} port {port} hung up at once")
        if (ip_address(peer[0]), peer[1]) != (ip_address(ip), port):
            stream.abort()
            raise RefusedUrl(Reason.BLOCKED_ADDRESS, f"dialled {ip} port {port} but reached {peer[0]} port {peer[1]}")


def _in_turns(answers: Answers) -> Answers:
    """Best first, but IPv6 and IPv4 in turns (RFC 8305): where one has no way out, the other is tried in time."""
    best_is_v6 = ":" in answers[0][0]
    alike = [address for address in answers if (":" in address[0]) is best_is_v6]
    others = [address for address in answers if (":" in address[0]) is not best_is_v6]
    return [address for pair in zip_longest(alike, others) for address in pair if address is not None]


def _network_reason(exc: OSError, *, connecting: bool = False) -> Reason:
    if exc.errno in _OUR_FAULT:
        return Reason.INTERNAL
    if isinstance(exc, TimeoutError):
        return Reason.TIMEOUT
    if isinstance(exc, ConnectionResetError | ConnectionAbortedError | BrokenPipeError) or not connecting:
        return Reason.CONNECTION_RESET
    return Reason.CONNECTION_REFUSED  # or no route: the host cannot be reached


def _tls_reason(exc: Exception) -> Reason:
    if isinstance(exc, ssl.SSLCertVerificationError):
        if exc.verify_code == _CERT_EXPIRED:
            return Reason.TLS_EXPIRED
        if exc.verify_code in _CERT_OTHER_NAME:
            return Reason.TLS_NAME
    return Reason.TLS
