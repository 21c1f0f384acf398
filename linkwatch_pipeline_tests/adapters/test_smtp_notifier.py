"""Mails by SMTP against a real server: TLS, login, and what is known when it fails at each stage."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme

from linkwatch_pipeline.adapters.notify.smtp import SmtpNotifier, SmtpSecurity, SmtpServer
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline_tests.mail_builders import a_mail
from linkwatch_pipeline_tests.world.mail_server import (
    DRIP,
    DROP,
    GARBAGE,
    HANG,
    PASSWORD,
    STAGES,
    USERNAME,
    MailServer,
)

COPIES = ("web@example.com", "sre@example.com")


@pytest.fixture
def server(mail_server: MailServer) -> Iterator[MailServer]:
    """The shared server, well and empty."""
    mail_server.accepted.clear()
    mail_server.logins.clear()
    mail_server.faults.clear()
    yield mail_server
    mail_server.faults.clear()


def notifier(
    server: MailServer,
    *,
    tls: ssl.SSLContext | None = None,
    seconds: float = 60,
    answer: float = 60,
    total: float = 100,
    **changes: Any,
) -> SmtpNotifier:
    where: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "security": SmtpSecurity(server.security),
        "username": USERNAME if server.login else "",
        "password": PASSWORD if server.login else "",
    }
    return SmtpNotifier(
        SmtpServer(**where | changes),
        tls=tls or server.trust,
        stage_seconds=seconds,
        answer_seconds=answer,
        total_seconds=total,
    )


def failure(sender: SmtpNotifier, **changes: Any) -> DeliveryError:
    with pytest.raises(DeliveryError) as refused:
        sender.send(a_mail(**changes))
    return refused.value


@pytest.mark.parametrize(("security", "login"), [("starttls", True), ("tls", True), ("none", False)])
def test_a_mail_arrives_whichever_way_the_conversation_is_protected(
    mail_authority: trustme.CA, security: str, login: bool
) -> None:
    with MailServer(mail_authority, security=security, login=login).running() as server:
        assert notifier(server).send(a_mail(copies=COPIES)) == "guide_3a2@linkwatch.invalid"
    (taken,) = server.accepted
    assert taken.mail_from == "linkwatch@example.com"
    assert taken.rcpt_tos == ["docs-team@example.com", *COPIES]
    assert server.logins == ([USERNAME.encode()] if login else [])


def test_a_server_without_tls_never_hears_the_password(mail_authority: trustme.CA) -> None:
    with MailServer(mail_authority, security="none", login=False).running() as server:
        error = failure(notifier(server, security=SmtpSecurity.STARTTLS, username=USERNAME, password=PASSWORD))
    assert (error.kind, server.logins, server.accepted) == (DeliveryFailure.NOT_ACCEPTED, [], [])


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize("name", ["127.0.0.1", "mail.example.org"])
def test_a_certificate_that_does_not_fit_ends_the_conversation(
    mail_authority: trustme.CA, security: str, name: str
) -> None:
    """Of another authority, or for another name."""
    with MailServer(mail_authority, security=security, name=name).running() as server:
        trust = ssl.create_default_context() if name == "127.0.0.1" else server.trust
        error = failure(notifier(server, tls=trust))
    assert (error.kind, server.logins, server.accepted) == (DeliveryFailure.NOT_ACCEPTED, [], [])
    assert "certificate" in str(error).lower()


def test_a_wrong_password_is_trouble_of_ours_and_not_the_mails(server: MailServer) -> None:
    error = failure(notifier(server, password="wrong"))
    assert error.kind is DeliveryFailure.NOT_ACCEPTED
    assert "535" in str(error)
    assert "wrong" not in str(error)
    assert server.accepted == []


def test_a_login_that_was_forgotten_is_no_refusal_of_the_mail(server: MailServer) -> None:
    error = failure(notifier(server, username="", password=""))
    assert error.kind is DeliveryFailure.NOT_ACCEPTED
    assert "530" in str(error)


def test_nobody_listens(mail_authority: trustme.CA) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = MailServer(mail_authority, port=unused.getsockname()[1])
        assert failure(notifier(server)).kind is DeliveryFailure.NOT_ACCEPTED
        assert failure(notifier(server, host="mail.invalid")).kind is DeliveryFailure.NOT_ACCEPTED


@pytest.mark.parametrize("stage", STAGES)
def test_a_lost_connection_is_in_doubt_only_after_the_whole_message(server: MailServer, stage: str) -> None:
    server.faults[stage] = DROP
    error = failure(notifier(server), copies=COPIES)
    assert error.kind is (DeliveryFailure.UNKNOWN if stage == "END" else DeliveryFailure.NOT_ACCEPTED)
    assert len(server.accepted) == (1 if stage == "END" else 0)


@pytest.mark.parametrize("fault", [HANG, GARBAGE])
@pytest.mark.parametrize("stage", ["GREETING", "STARTTLS", "RCPT", "DATA", "END"])
def test_silence_and_nonsense_are_in_doubt_only_after_the_whole_message(
    server: MailServer, stage: str, fault: str
) -> None:
    server.faults[stage] = fault
    sender = notifier(server)
    if fault == HANG:
        sender = notifier(server, answer=0.15) if stage == "END" else notifier(server, seconds=0.15)
    error = failure(sender)
    assert error.kind is (DeliveryFailure.UNKNOWN if stage == "END" else DeliveryFailure.NOT_ACCEPTED)
    assert fault == HANG or "the answer is no SMTP" in str(error)


@pytest.mark.parametrize("fault", [DROP, HANG])
def test_a_message_that_did_not_get_through_whole_was_not_accepted(server: MailServer, fault: str) -> None:
    """Larger than what buffers on the way take, so that it is noticed before the final dot."""
    server.faults["BODY"] = fault
    error = failure(notifier(server, seconds=0.3), text=("x" * 800 + "\n") * 9_000)
    assert (error.kind, server.accepted) == (DeliveryFailure.NOT_ACCEPTED, [])


@pytest.mark.parametrize("stage", ["GREETING", "MAIL"])
def test_an_answer_that_never_ends_is_cut_off(server: MailServer, stage: str) -> None:
    """Each line comes in time, so only the bound on the whole conversation helps."""
    server.faults[stage] = DRIP
    assert failure(notifier(server, total=0.4)).kind is DeliveryFailure.NOT_ACCEPTED


def test_the_last_answer_that_never_ends_is_cut_off_and_in_doubt(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Timer(threading.Thread):
        """Its time is over when the server has the whole message, however slow this machine is."""

        def __init__(self, seconds: float, cut: Callable[[], None]) -> None:
            super().__init__()
            self._cut, self._cancelled = cut, threading.Event()

        def run(self) -> None:
            while not server.accepted and not self._cancelled.wait(0.01):
                pass
            self._cut()

        def cancel(self) -> None:
            self._cancelled.set()

    monkeypatch.setattr(threading, "Timer", Timer)
    server.faults["END"] = DRIP
    assert failure(notifier(server)).kind is DeliveryFailure.UNKNOWN


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "COPY"])
def test_not_now_means_later(server: MailServer, stage: str) -> None:
    server.faults[stage] = "451 4.3.0 later please"
    error = failure(notifier(server))
    assert error.kind is DeliveryFailure.NOT_ACCEPTED
    assert "451" in str(error)
    assert server.accepted == []


@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA", "END"])
def test_never_means_never_once_the_mail_itself_is_spoken_of(server: MailServer, stage: str) -> None:
    server.faults[stage] = "550 5.7.1 not this one"
    error = failure(notifier(server))
    assert error.kind is DeliveryFailure.PERMANENT
    assert "550 5.7.1 not this one" in str(error)


@pytest.mark.parametrize("stage", ["GREETING", "EHLO", "STARTTLS", "AUTH"])
def test_never_before_that_is_trouble_with_the_server(server: MailServer, stage: str) -> None:
    server.faults[stage] = "554 5.7.0 no service for you"
    assert failure(notifier(server)).kind is DeliveryFailure.NOT_ACCEPTED


@pytest.mark.parametrize("answer", ["550 5.1.1 who?", "452 too many"])
def test_a_refused_copy_does_not_keep_the_mail_from_its_owner(
    server: MailServer, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults["COPY"] = answer
    notifier(server).send(a_mail(copies=COPIES))
    (taken,) = server.accepted
    assert taken.rcpt_tos == ["docs-team@example.com"]
    told = [record for record in caplog.records if record.getMessage() == "a copy was refused"]
    assert [(record.code, record.transition_id) for record in told] == [(int(answer[:3]), "guide:2")] * 2  # type: ignore[attr-defined]
    assert "@" not in "".join(str(vars(record)) for record in told)


def test_nobodys_address_is_repeated_from_what_the_server_says(server: MailServer) -> None:
    server.faults["RCPT"] = "550 5.1.1 <docs-team@example.com>: Recipient address rejected"
    assert str(failure(notifier(server))).endswith("550 5.1.1 <(address)>: Recipient address rejected")


def test_after_a_failure_the_next_mail_arrives(server: MailServer) -> None:
    sender = notifier(server)
    server.faults["END"] = DROP
    failure(sender)
    server.faults.clear()
    sender.send(a_mail(transition_id="guide:3"))
    assert len(server.accepted) == 2


def test_the_password_is_not_shown(server: MailServer) -> None:
    assert PASSWORD not in repr(SmtpServer(host="h", port=1, security=SmtpSecurity.TLS, password=PASSWORD))
