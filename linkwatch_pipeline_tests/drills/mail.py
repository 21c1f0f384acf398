"""Drills of the mail's way: servers that are down, answers that are lost, a host that takes everything with it."""

from __future__ import annotations

import email
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email import policy
from pathlib import Path
from unittest.mock import patch

from linkwatch_pipeline.adapters.notify.ses import SesNotifier, ses_client
from linkwatch_pipeline.adapters.notify.ses_events import read_events
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.notices import is_possible_duplicate
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices
from linkwatch_pipeline.use_cases.reconcile import reconcile_mail_events
from linkwatch_pipeline.use_cases.send_mail import WAIT_FOR_WORD
from linkwatch_pipeline_tests.drills.account import Account
from linkwatch_pipeline_tests.drills.desk import Desk, desk
from linkwatch_pipeline_tests.use_cases.office import SENDER
from linkwatch_pipeline_tests.world.ses_server import LOSE, SesServer

NOBODYS_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


def smtp_down_for_a_day(folder: Path, account: Account) -> None:
    """The mail server is down from Monday 09:20 on, for a day."""
    with desk(folder, mail_is_up=False) as home:
        account.step("6 links break in the run of Monday 09:00; the mail server is down")
        home.break_links(6)
        found = home.live(timedelta(minutes=10)) | home.live(timedelta(days=1, hours=1), every=timedelta(hours=1))
        account.check("notices that arrived in that day", sum(home.arrived().values()), 0)
        account.check("notices that are kept", home.statuses(), {"pending": 6})
        account.check("what health found", sorted(found), ["notice_overdue"])
        account.check("what on-call was told", home.told(), ["unhealthy", "still_unhealthy"])
        account.step("Tuesday 10:30: the mail server is back")
        with home.mail.running():
            home.live(timedelta(hours=2), every=timedelta(minutes=30))
            account.check("notices that arrived", len(home.arrived()), 6)
            account.check("most often one arrived", max(home.arrived().values()), 1)
            account.check("where the notices stand", home.statuses(), {"sent": 6})
        account.check("what on-call was told", home.told(), ["unhealthy", "still_unhealthy", "recovered"])


def ses_answer_lost(folder: Path, account: Account) -> None:
    """SES accepts two mails and both answers are lost; an event tells of one of them."""
    with desk(folder) as home, _ses(script=[LOSE, LOSE]) as ses:
        account.step("2 links break; SES accepts both mails, and its answers never arrive")
        home.break_links(2)
        _deliver_by_ses(home, ses)
        account.check("mails that SES has", len(ses.accepted), 2)
        account.check("where the notices stand", home.statuses(), {"unknown": 2})
        account.check("what health found", home.look(), ["delivery_unknown"] * 2)
        account.step("SES tells by an event that the first mail was delivered")
        file = ses.publish(folder / "events", ses.accepted[0], "Delivery")
        events = [event for event in read_events(file.read_text()) if event is not None]
        with home.open() as app:
            account.check("notices that the event settled", reconcile_mail_events(app.store, events).changed, 1)
        account.step("of the second mail nobody says anything; an hour later it is sent again")
        report = _deliver_by_ses(home, ses)
        account.check("sent before the hour is over", report.sent, 0)
        home.clock.advance(WAIT_FOR_WORD)
        account.check("sent after it", _deliver_by_ses(home, ses).sent, 1)
        account.check("mails that SES has", len(ses.accepted), 3)
        again = email.message_from_bytes(ses.accepted[2].content, policy=policy.default)
        account.check("the third says that it may be a repetition", "may have this mail already" in str(again), True)
        with home.open() as app:
            admitted = {notice.status.value for notice in app.store.notices() if is_possible_duplicate(notice)}
        account.check("so does its record", "sent" in admitted, True)
        account.check("where the notices stand", home.statuses(), {"delivered": 1, "sent": 1})


def host_takes_300_links(folder: Path, account: Account) -> None:
    """A host dies and takes its 300 links with it; its owner wants digests."""
    with desk(folder) as home:
        account.step("300 links of one host break in one run")
        home.break_links(300, delivery=Delivery.DIGEST)
        account.check("one dead host makes no run suspect", home.look(), [])
        account.check("notices that were sent", home.deliver(), 300)
        account.check("mails for them", len(home.mail.accepted), 1)
        mail = email.message_from_bytes(home.mail.accepted[0].original_content or b"", policy=policy.default)
        account.check("its subject", mail["Subject"], "[linkwatch] 300 broken: docs-team")
        html = mail.get_body(("html",))
        assert html is not None
        lines = re.findall(r"<summary[^>]*>(.*?)</summary>", html.get_content(), re.DOTALL)
        plain = [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in lines]
        account.check("lines that a reader sees", plain, ["docs.example.com : 300 broken"])
        account.check("a second delivery sends", home.deliver(), 0)


@contextmanager
def _ses(script: list[str]) -> Iterator[SesServer]:
    with patch.dict(os.environ, NOBODYS_CREDENTIALS), SesServer(script=script).running() as ses:
        yield ses


def _deliver_by_ses(home: Desk, ses: SesServer) -> DeliveryReport:
    client = ses_client(region="eu-west-1", endpoint_url=ses.url)
    try:
        with home.open() as app:
            notifier = SesNotifier(client, configuration_set=ses.configuration_set)
            return deliver_notices(app.store, notifier, clock=home.clock, sender=SENDER, claimant="drill")
    finally:
        client.close()
