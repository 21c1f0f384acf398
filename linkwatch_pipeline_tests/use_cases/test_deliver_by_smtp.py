"""Delivery through a real mail server that goes away and comes back."""

from __future__ import annotations

import email
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from linkwatch_pipeline.adapters.notify.smtp import SmtpNotifier, SmtpSecurity, SmtpServer
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices
from linkwatch_pipeline.use_cases.send_mail import WAIT_FOR_WORD
from linkwatch_pipeline_tests.builders import MONDAY, a_link, an_observation
from linkwatch_pipeline_tests.ports import reserved_port
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world.mail_server import DROP, PASSWORD, USERNAME, MailServer

CLOCK_BEGINS = MONDAY + timedelta(minutes=30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store with three links that broke."""
    opened = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    opened.put_owner(Owner(team="docs-team", address="docs-team@example.com"))
    for name in ("guide", "home", "start"):
        link = a_link(name)
        opened.save_link(link, replaces=None)
        opened.record(an_observation(link, 404), default_confirm=1, now=CLOCK_BEGINS)
    yield opened
    opened.close()


def deliver(store: SqliteStore, server: MailServer, clock: VirtualClock) -> DeliveryReport:
    where = SmtpServer(
        host="127.0.0.1", port=server.port, security=SmtpSecurity.STARTTLS, username=USERNAME, password=PASSWORD
    )
    notifier = SmtpNotifier(where, tls=server.trust)
    return deliver_notices(store, notifier, clock=clock, sender="linkwatch@example.com", claimant="sender-1")


def transitions(server: MailServer) -> list[str]:
    """Of the mails that arrived, in their order."""
    mails = [email.message_from_bytes(taken.original_content or b"") for taken in server.accepted]
    return [mail["X-Linkwatch-Transition"] for mail in mails]


def test_a_server_that_is_down_for_a_day_gets_every_mail_once(store: SqliteStore, mail_authority: trustme.CA) -> None:
    clock = VirtualClock(CLOCK_BEGINS)
    with reserved_port() as port:
        server = MailServer(mail_authority, port=port)
        for _ in range(8):
            assert deliver(store, server, clock).sent == 0
            clock.advance(timedelta(hours=3))
        with server.running():
            for _ in range(3):
                deliver(store, server, clock)
                clock.advance(timedelta(hours=1))
    assert transitions(server) == ["guide:1", "home:1", "start:1"]
    assert {notice.status for notice in store.notices()} == {NoticeStatus.SENT}


def test_a_lost_answer_is_repeated_after_an_hour_and_admits_it(store: SqliteStore, mail_server: MailServer) -> None:
    mail_server.accepted.clear()
    clock = VirtualClock(CLOCK_BEGINS)
    mail_server.faults["END"] = DROP
    try:
        assert deliver(store, mail_server, clock) == DeliveryReport(unknown=3)
    finally:
        mail_server.faults.clear()
    assert deliver(store, mail_server, clock).sent == 0
    clock.advance(WAIT_FOR_WORD)
    assert deliver(store, mail_server, clock) == DeliveryReport(sent=3)
    assert transitions(mail_server) == ["guide:1", "home:1", "start:1"] * 2
    said = [b"may have this mail already" in (taken.original_content or b"") for taken in mail_server.accepted]
    assert said == [False] * 3 + [True] * 3
