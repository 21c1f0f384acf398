"""A real SMTP server (aiosmtpd) on loopback with real TLS and login, that can fail at any stage on demand."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import AnyStr

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USERNAME, PASSWORD = "linkwatch", "correct horse"
DROP = "drop"  # the connection is lost at once
HANG = "hang"  # nothing more is said
DRIP = "drip"  # an answer that never ends
GARBAGE = "garbage"  # an answer that is none
STAGES = ("GREETING", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "COPY", "DATA", "END")


@dataclass
class MailServer:
    """What the server is told to do, and what it accepted.

    `faults` by stage: DROP, HANG, DRIP, GARBAGE, or the answer to give instead (`451 later`). COPY is the second RCPT
    and those after it. BODY is while the message is on its way (DROP or HANG), END when all of it is there; with
    `END: DROP` it is accepted first.
    """

    authority: trustme.CA
    security: str = "starttls"
    login: bool = True
    name: str = "127.0.0.1"
    faults: dict[str, str] = field(default_factory=dict)
    accepted: list[Envelope] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)
    port: int = 0

    @contextmanager
    def running(self) -> Iterator[MailServer]:
        """Serve in a thread of its own: on `port`, a free one if that is 0, and after a break on the same one again."""
        loop = asyncio.new_event_loop()
        started = threading.Event()
        thread = threading.Thread(target=self._serve, args=(loop, started), daemon=True)
        thread.start()
        assert started.wait(60)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(60)

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """A client's trust store that knows this server."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context

    def _serve(self, loop: asyncio.AbstractEventLoop, started: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(self.name).configure_cert(tls)

        conversations: list[_Conversation] = []

        def conversation() -> _Conversation:
            begun = _Conversation(
                self,
                hostname="mail.example.com",
                loop=loop,
                tls_context=tls if self.security == "starttls" else None,
                require_starttls=self.security == "starttls",
                # aiosmtpd knows only its own STARTTLS as TLS; elsewhere a login is taken, not asked for.
                auth_required=self.login and self.security == "starttls",
                auth_require_tls=self.security == "starttls",
                authenticator=self._authenticate,
            )
            conversations.append(begun)
            return begun

        implicit = tls if self.security == "tls" else None
        server = loop.run_until_complete(loop.create_server(conversation, sock=self._listening(), ssl=implicit))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        try:
            loop.run_forever()
        finally:
            server.close()
            loop.run_until_complete(_end(conversations))
            loop.close()

    def _listening(self) -> socket.socket:
        """A bound socket. Few bytes wait there unread: a client soon notices that nobody reads them."""
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        bound.bind(("127.0.0.1", self.port))
        return bound

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, auth_data: object
    ) -> AuthResult:
        assert isinstance(auth_data, LoginPassword)
        self.logins.append(auth_data.login)
        known = (auth_data.login, auth_data.password) == (USERNAME.encode(), PASSWORD.encode())
        return AuthResult(success=known, handled=known)


async def _end(conversations: list[_Conversation]) -> None:
    """Drop whoever is still there, so that nothing is left open."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for conversation in conversations:
        conversation.drop()
    await asyncio.sleep(0.01)


class _Inbox:
    """Takes every message."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(server, _Conversation)
        fault = self._server.faults.get("END")
        if fault is None or fault in (DROP, HANG, DRIP, GARBAGE):
            self._server.accepted.append(envelope)
        if fault is not None:
            await server.misbehave(fault)
            return fault
        return f"250 2.0.0 Ok: queued as {len(self._server.accepted)}"


class _Conversation(SMTP):
    """One connection, with a fault before the command of its stage is looked at."""

    def __init__(self, server: MailServer, **options: object) -> None:
        self._faulty = server
        super().__init__(_Inbox(server), **options)  # type: ignore[arg-type]

    def drop(self) -> None:
        """Lose the connection, under TLS or not."""
        for transport in (self._original_transport, self.transport):
            if transport is not None:
                transport.abort()  # type: ignore[attr-defined]

    async def misbehave(self, fault: str) -> None:
        """Do what a fault says; return only if it is an answer."""
        assert self.transport is not None
        if fault == DROP:
            self.drop()
        elif fault == GARBAGE:
            self.transport.write(b"\xff\xfe what?\r\n")  # type: ignore[attr-defined]
        elif fault == DRIP:
            while True:
                self.transport.write(b"250-and so on\r\n")  # type: ignore[attr-defined]
                await asyncio.sleep(0.02)
        elif fault != HANG:
            return
        await asyncio.sleep(60)

    async def push(self, status: AnyStr) -> None:
        if not (str(status).startswith("220 mail.") and await self._answers_fault("GREETING")):
            await super().push(status)

    async def _answers_fault(self, stage: str) -> bool:
        fault = self._faulty.faults.get(stage)
        if fault is None:
            return False
        await self.misbehave(fault)
        await super().push(fault)
        return True

    async def smtp_EHLO(self, hostname: str) -> None:  # noqa: N802
        if not await self._answers_fault("EHLO"):
            await super().smtp_EHLO(hostname)

    async def smtp_STARTTLS(self, arg: str) -> None:  # noqa: N802
        if not await self._answers_fault("STARTTLS"):
            await super().smtp_STARTTLS(arg)

    async def smtp_AUTH(self, arg: str) -> None:  # noqa: N802
        if not await self._answers_fault("AUTH"):
            await super().smtp_AUTH(arg)

    async def smtp_MAIL(self, arg: str) -> None:  # noqa: N802
        if not await self._answers_fault("MAIL"):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg: str) -> None:  # noqa: N802
        assert self.envelope is not None
        if not await self._answers_fault("COPY" if self.envelope.rcpt_tos else "RCPT"):
            await super().smtp_RCPT(arg)

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        if await self._answers_fault("DATA"):
            return
        if "BODY" in self._faulty.faults:
            await super().push("354 go on")
            await self.misbehave(self._faulty.faults["BODY"])
        await super().smtp_DATA(arg)
