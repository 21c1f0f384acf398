"""Mails through an SMTP server (RFC 5321), by the standard library's client, each command on its own.

Each stage says something else about a mail that failed. Before the message's final dot nothing was accepted; after the
dot was sent, only an answer tells. So the dot is a write of its own.
"""

from __future__ import annotations

import logging
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from enum import StrEnum
from typing import Any

from linkwatch_pipeline.adapters.notify.message import address_spec, to_message
from linkwatch_pipeline.adapters.notify.provider_words import told_by_provider
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.ports import Mail

logger = logging.getLogger(__name__)

STAGE_SECONDS = 10.0  # for each answer
ANSWER_SECONDS = 30.0  # for the answer to the final dot, when a server may scan the mail
TOTAL_SECONDS = 75.0  # for the whole conversation: well within a claim of two minutes
_AUTHENTICATION_REQUIRED = 530
_START_OF_MESSAGE = 354


class SmtpSecurity(StrEnum):
    """How the conversation is protected."""

    STARTTLS = "starttls"  # begins in the clear and goes on in TLS, or not at all
    TLS = "tls"  # TLS from the first byte
    NONE = "none"  # for a server on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """Where mails are handed over, and as whom. Without a user name nobody logs in."""

    host: str
    port: int
    security: SmtpSecurity
    username: str = ""
    password: str = field(default="", repr=False)


class SmtpNotifier:
    """One connection per mail. The provider's id is the Message-ID, which servers write into their logs.

    Trouble with the server or our account (greeting, TLS, login) means "try later": it says nothing about the mail.

    Args: tls: the trust store; a certificate must fit the server's name.
    """

    def __init__(
        self,
        server: SmtpServer,
        *,
        tls: ssl.SSLContext,
        stage_seconds: float = STAGE_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._server = server
        self._tls = tls
        self._stage_seconds = stage_seconds
        self._answer_seconds = answer_seconds
        self._total_seconds = total_seconds

    def send(self, mail: Mail) -> str:
        """Hand over one mail; its Message-ID. Raises DeliveryError, of the kind that the stage tells."""
        message = to_message(mail)
        with self._conversation() as smtp:
            self._name_people(smtp, mail)
            self._begin_message(smtp)
            self._send_message(smtp, message)
        return mail.message_id.strip("<>")

    @contextmanager
    def _conversation(self) -> Iterator[smtplib.SMTP]:
        """A session that is ready for a mail. Trouble before it is ready is never the mail's."""
        with self._stage("connecting to"):
            smtp = self._connect()
        try:
            with self._stage("opening a session with"):
                self._open_session(smtp)
            yield smtp
            with suppress(smtplib.SMTPException, OSError):  # the mail is accepted, whatever becomes of the goodbye
                smtp.quit()
        finally:
            smtp.close()

    def _connect(self) -> smtplib.SMTP:
        bounds = {"timeout": self._stage_seconds, "total_seconds": self._total_seconds}
        if self._server.security is SmtpSecurity.TLS:
            return _BoundedOverTls(self._server.host, self._server.port, context=self._tls, **bounds)
        return _Bounded(self._server.host, self._server.port, **bounds)

    def _open_session(self, smtp: smtplib.SMTP) -> None:
        _expect(250, smtp.ehlo())
        if self._server.security is SmtpSecurity.STARTTLS:
            _expect(220, smtp.starttls(context=self._tls))
            _expect(250, smtp.ehlo())
        if self._server.username:
            smtp.login(self._server.username, self._server.password)

    def _name_people(self, smtp: smtplib.SMTP, mail: Mail) -> None:
        """The owner must be taken; a refused copy must not keep the mail from the owner."""
        self._require(smtp, "naming the sender to", lambda: smtp.mail(address_spec(mail.sender)))
        self._require(smtp, "naming the owner to", lambda: smtp.rcpt(address_spec(mail.recipient)))
        for copy in mail.copies:
            with self._stage("naming a copy to"):
                code, _ = smtp.rcpt(address_spec(copy))
            if code not in (250, 251):
                logger.warning(
                    "a copy was refused",
                    extra={"action": "send_mail", "transition_id": mail.transition_id, "code": code},
                )

    def _begin_message(self, smtp: smtplib.SMTP) -> None:
        self._require(smtp, "announcing the message to", lambda: smtp.docmd("DATA"), accepted=(_START_OF_MESSAGE,))

    def _send_message(self, smtp: smtplib.SMTP, message: EmailMessage) -> None:
        # Lines end with CRLF already (email.policy.SMTP); a line that begins with a dot gets another one.
        lines = [b"." + line if line.startswith(b".") else line for line in message.as_bytes().split(b"\r\n")]
        with self._stage("sending the message to"):
            smtp.send(b"\r\n".join(lines).removesuffix(b"\r\n") + b"\r\n")
        with self._stage("waiting for the word of", DeliveryFailure.UNKNOWN):
            if smtp.sock is not None:
                smtp.sock.settimeout(self._answer_seconds)
            smtp.send(b".\r\n")
            code, answer = smtp.getreply()
        if not 200 <= code <= 299:
            raise self._refusal("handing the message to", code, answer, otherwise=DeliveryFailure.UNKNOWN)

    def _require(
        self,
        smtp: smtplib.SMTP,
        doing: str,
        command: Callable[[], tuple[int, bytes]],
        *,
        accepted: tuple[int, ...] = (250, 251),
    ) -> None:
        with self._stage(doing):
            code, answer = command()
        if code not in accepted:
            raise self._refusal(doing, code, answer)

    def _refusal(
        self, doing: str, code: int, answer: bytes, *, otherwise: DeliveryFailure = DeliveryFailure.NOT_ACCEPTED
    ) -> DeliveryError:
        """4xx is for now and 5xx for good, unless only a login is missing; `otherwise` for an answer that is none."""
        if 500 <= code <= 599 and code != _AUTHENTICATION_REQUIRED:
            kind = DeliveryFailure.PERMANENT
        else:
            kind = DeliveryFailure.NOT_ACCEPTED if 400 <= code <= 599 else otherwise
        return DeliveryError(f"{doing} {self._server.host}: {_answered(code, answer)}", kind)

    @contextmanager
    def _stage(self, doing: str, kind: DeliveryFailure = DeliveryFailure.NOT_ACCEPTED) -> Iterator[None]:
        try:
            yield
        except smtplib.SMTPResponseException as exc:
            words = _answered(exc.smtp_code, exc.smtp_error)
            raise DeliveryError(f"{doing} {self._server.host}: {words}", kind) from exc
        except (smtplib.SMTPException, OSError, ValueError) as exc:  # ValueError: a line that is no SMTP at all
            words = told_by_provider("", str(exc) or type(exc).__name__)
            raise DeliveryError(f"{doing} {self._server.host}: {words}", kind) from exc


def _answered(code: int, answer: bytes | str) -> str:
    """The server's words. smtplib gives -1 for what begins with no code, and has cut its first letters off."""
    return told_by_provider(f"{code} ", answer) if code > 0 else "the answer is no SMTP"


def _expect(code: int, answer: tuple[int, bytes]) -> None:
    if answer[0] != code:
        raise smtplib.SMTPResponseException(*answer)


class _Bounded(smtplib.SMTP):
    """Ends by itself after `total_seconds`, whatever it is doing: a server that drips never runs into a timeout."""

    def __init__(self, *args: Any, total_seconds: float, **options: Any) -> None:
        self._watchdog = threading.Timer(total_seconds, self._cut)
        self._watchdog.daemon = True
        self._watchdog.start()
        try:
            super().__init__(*args, **options)  # connects, and reads the greeting
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._watchdog.cancel()
        super().close()

    def _cut(self) -> None:
        if self.sock is not None:
            with suppress(OSError):  # the plain socket's own, as TLS's may not be called from here
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class _BoundedOverTls(_Bounded, smtplib.SMTP_SSL):
    """In TLS from the first byte."""
