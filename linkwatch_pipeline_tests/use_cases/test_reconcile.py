"""What became of a mail, learnt from the provider's events: real store, real delivery, a stand-in for SES."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.metrics.local import LocalMetrics
from linkwatch_pipeline.adapters.notify.ses import SesNotifier
from linkwatch_pipeline.adapters.notify.ses_events import read_events
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.health_findings import Finding
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.mail_events import MailEventKind
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import count_chains
from linkwatch_pipeline.ports import Notifier
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices
from linkwatch_pipeline.use_cases.reconcile import BadNews, ReconcileReport, reconcile_mail_events
from linkwatch_pipeline.use_cases.send_mail import WAIT_FOR_WORD
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, an_observation, dispatched
from linkwatch_pipeline_tests.mail_builders import a_mail
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world.ses_server import LOSE, SesServer

OWNER, COPY = "docs-team@example.com", "web@example.com"


@dataclass
class Office:
    """A store, a sender and an SES, whose events lie in a folder until they are brought."""

    store: SqliteStore
    ses: SesServer
    notifier: Notifier
    events: Path
    clock: VirtualClock

    def deliver(self) -> DeliveryReport:
        return deliver_notices(self.store, self.notifier, clock=self.clock, sender=self.ses.sender, claimant="sender-1")

    def break_link(self, link_id: str = "guide", **changes: Any) -> None:
        link = a_link(link_id, **changes)
        self.store.save_link(link, replaces=None)
        now = self.clock.now()
        seen = an_observation(link, 404, started_at=now, observed_at=now)
        self.store.record(seen, default_confirm=1, now=now)

    def tell(self, kind: str, *recipients: str, mail: int = -1) -> None:
        """SES publishes an event of one of the mails that it accepted, the last without a number."""
        self.ses.publish(self.events, self.ses.accepted[mail], kind, recipients)

    def bring(self) -> ReconcileReport:
        """Bring everything published so far, each time anew."""
        texts = [file.read_text() for file in sorted(self.events.iterdir())]
        return reconcile_mail_events(
            self.store, [event for text in texts for event in read_events(text) if event is not None]
        )

    def notice(self, transition_id: str = "guide:1") -> Notice:
        notice = self.store.get_notice(transition_id)
        assert notice is not None
        return notice

    def findings(self, tmp: Path) -> list[Finding]:
        found = watch_health(self.store, LocalMetrics(tmp / "metrics.jsonl"), clock=self.clock)
        return [finding for finding in found if finding.code.startswith(("address", "copy"))]


@pytest.fixture
def office(tmp_path: Path, ses_server: SesServer, ses_at_server: Any) -> Iterator[Office]:
    ses_server.accepted.clear()
    ses_server.script.clear()
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    store.put_owner(Owner(team="docs-team", address=OWNER))
    store.put_owner(Owner(team="web", address=COPY))
    notifier = SesNotifier(ses_at_server, configuration_set="linkwatch")
    yield Office(store, ses_server, notifier, tmp_path / "events", VirtualClock(MONDAY + timedelta(hours=1)))
    store.close()


def test_a_lost_answer_is_settled_by_an_event_and_nothing_is_sent_again(office: Office) -> None:
    office.break_link()
    office.ses.script = [LOSE]
    assert office.deliver() == DeliveryReport(unknown=1)
    office.tell("Send")
    assert office.bring() == ReconcileReport(changed=1)
    assert (office.notice().status, office.notice().last_error) == (NoticeStatus.SENT, None)
    assert office.notice().provider_id == office.ses.accepted[0].message_id
    office.clock.advance(2 * WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport()
    assert len(office.ses.accepted) == 1


def test_a_lost_answer_without_an_event_is_sent_again_and_says_so(office: Office) -> None:
    office.break_link()
    office.ses.script = [LOSE]
    office.deliver()
    office.clock.advance(WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport(sent=1)
    assert [b"may have this mail already" in mail.content.replace(b"=\r\n", b"") for mail in office.ses.accepted] == [
        False,
        True,
    ]


def test_an_event_that_is_faster_than_the_answer_is_not_overwritten(office: Office) -> None:
    office.break_link()

    class Overtaken:
        def send(self, mail: Any) -> str:
            provider_id = office.notifier.send(mail)
            office.tell("Delivery")
            assert office.bring().changed == 1
            return provider_id

    deliver_notices(office.store, Overtaken(), clock=office.clock, sender=office.ses.sender, claimant="sender-1")
    assert office.notice().status is NoticeStatus.DELIVERED


def test_a_sender_that_died_in_mid_call_is_settled_too(office: Office) -> None:
    office.break_link()

    class Dying:
        def send(self, mail: Any) -> str:
            office.notifier.send(mail)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deliver_notices(office.store, Dying(), clock=office.clock, sender=office.ses.sender, claimant="sender-1")
    assert office.notice().status is NoticeStatus.SENDING
    office.tell("Delivery")
    office.bring()
    office.clock.advance(timedelta(hours=3))
    assert office.deliver() == DeliveryReport()
    assert office.notice().status is NoticeStatus.DELIVERED


def test_events_are_brought_twice_and_late_without_harm(office: Office) -> None:
    office.break_link()
    office.deliver()
    for kind in ("Bounce", "Delivery", "Bounce", "Send"):
        office.tell(kind, OWNER)
    assert (office.bring().changed, office.notice().status) == (1, NoticeStatus.BOUNCED)
    again = office.bring()
    assert (again.changed, again.unchanged, office.notice().status) == (0, 4, NoticeStatus.BOUNCED)


def test_mails_of_somebody_else_are_told_apart_and_harm_nothing(office: Office) -> None:
    office.break_link()
    office.deliver()
    other = replace(office.ses.accepted[0], message_id="0100-other", tags={})
    unknown = replace(office.ses.accepted[0], message_id="0100-late", tags={"linkwatch-mail": "retired_3a7"})
    for mail in (other, unknown):
        office.ses.publish(office.events, mail, "Delivery")
    office.tell("Delivery", OWNER)
    assert office.bring() == ReconcileReport(changed=1, unmatched=("0100-other", "retired:7"))


def test_an_event_without_our_tag_finds_its_notice_by_the_providers_id(office: Office) -> None:
    office.break_link()
    office.deliver()
    office.ses.accepted[0] = replace(office.ses.accepted[0], tags={})
    office.tell("Bounce", OWNER)
    assert office.bring().changed == 1
    assert office.notice().status is NoticeStatus.BOUNCED


def test_one_event_settles_every_notice_that_its_mail_told(office: Office) -> None:
    """A digest has an id of its own, and each notice in it has the provider's."""
    for name in ("guide", "home"):
        office.break_link(name)
    office.notifier.send(a_mail(transition_id="digest:docs", transition_ids=("guide:1", "home:1")))
    provider_id = office.ses.accepted[0].message_id
    for name in ("guide:1", "home:1"):
        found = office.notice(name)
        sent = replace(found, status=NoticeStatus.SENT, attempts=1, recipient=OWNER, provider_id=provider_id)
        assert office.store.update_notice(sent, replaces=found)
    office.tell("Delivery", OWNER)
    assert office.bring() == ReconcileReport(changed=1)
    assert {office.notice(name).status for name in ("guide:1", "home:1")} == {NoticeStatus.DELIVERED}


def test_one_event_settles_a_whole_digest_whose_answer_was_lost(office: Office) -> None:
    office.store.put_owner(Owner(team="docs-team", address=OWNER, delivery=Delivery.DIGEST))
    links = [a_link(name) for name in ("guide", "home")]
    for link in links:
        office.store.save_link(link, replaces=None)
    for link, job in zip(links, dispatched(office.store, links), strict=True):
        office.store.record(an_observation(link, 404, job=job), default_confirm=1, now=office.clock.now())
    office.store.close_run(RUN_ID, totals=count_chains(office.store.chains(RUN_ID)), at=office.clock.now())
    office.ses.script = [LOSE]
    assert office.deliver().unknown == 2
    (mail,) = office.ses.accepted
    assert mail.tags["linkwatch-mail"].startswith("digest_3a")
    office.tell("Delivery", OWNER)
    assert office.bring() == ReconcileReport(changed=1)
    assert {office.notice(name).status for name in ("guide:1", "home:1")} == {NoticeStatus.DELIVERED}
    office.clock.advance(2 * WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport()


def test_a_bounce_is_told_to_on_call_by_team_until_the_address_is_mended(
    office: Office, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    office.break_link()
    office.deliver()
    office.tell("Bounce", OWNER)
    report = office.bring()
    assert report.bad_news == (
        BadNews(
            transition_id="guide:1",
            kind=MailEventKind.BOUNCE,
            teams=("docs-team",),
            detail="the mail came back: Permanent/General, 5.1.1",
        ),
    )
    (finding,) = office.findings(tmp_path)
    assert (finding.code, finding.severity, finding.subject) == ("address_bounces", "critical", "docs-team")
    assert "guide:1" in finding.detail
    assert "@" not in finding.detail + "".join(str(vars(record)) for record in caplog.records)

    office.store.put_owner(Owner(team="docs-team", address="new@example.com"))
    assert office.findings(tmp_path) == []
    assert office.notice().status is NoticeStatus.BOUNCED  # listed for good: nobody was told


def test_a_bouncing_address_is_still_tried_and_a_delivery_clears_it(office: Office, tmp_path: Path) -> None:
    office.break_link()
    office.deliver()
    office.tell("Bounce", OWNER)
    office.bring()
    office.clock.advance(timedelta(days=7))
    office.break_link("home")
    assert office.deliver() == DeliveryReport(sent=1)
    assert len(office.findings(tmp_path)) == 1
    office.tell("Delivery", OWNER)
    office.bring()
    assert office.findings(tmp_path) == []


def test_a_complaint_is_a_warning_for_a_month(office: Office, tmp_path: Path) -> None:
    office.break_link()
    office.deliver()
    office.tell("Complaint", OWNER)
    assert office.bring().bad_news[0].kind is MailEventKind.COMPLAINT
    (finding,) = office.findings(tmp_path)
    assert (finding.code, finding.severity, finding.subject) == ("address_complains", "warning", "docs-team")
    office.clock.advance(timedelta(days=31))
    assert office.findings(tmp_path) == []


def test_a_copy_that_bounced_is_the_other_teams_and_the_owners_mail_goes_on(office: Office, tmp_path: Path) -> None:
    office.break_link(also_used_by=("web",))
    office.deliver()
    office.tell("Bounce", COPY)
    office.tell("Delivery", OWNER)
    report = office.bring()
    assert [news.teams for news in report.bad_news] == [("web",)]
    assert office.notice().status is NoticeStatus.DELIVERED
    assert office.notice().last_error == "of somebody who got a copy: the mail came back: Permanent/General, 5.1.1"
    (finding,) = office.findings(tmp_path)
    assert (finding.code, finding.severity, finding.subject) == ("copy_came_back", "warning", "guide:1")
    assert "web" in finding.detail


def test_many_bounces_are_one_finding_a_team(office: Office, tmp_path: Path) -> None:
    for number in range(7):
        office.break_link(f"guide-{number}")
    office.deliver()
    for number in range(7):
        office.tell("Bounce", OWNER, mail=number)
    assert len(office.bring().bad_news) == 7
    (finding,) = office.findings(tmp_path)
    assert "guide-4:1 and 2 more" in finding.detail


@pytest.mark.parametrize("rivals", [1, 99])
def test_a_notice_that_changes_meanwhile_is_read_again(office: Office, rivals: int) -> None:
    office.break_link()
    office.deliver()
    office.tell("Delivery", OWNER)

    class Contended:
        """The same store, where somebody else is faster a number of times."""

        def __init__(self) -> None:
            self.left = rivals

        def __getattr__(self, name: str) -> Callable[..., Any]:
            real: Callable[..., Any] = getattr(office.store, name)
            return real

        def update_notice(self, notice: Notice, *, replaces: Notice) -> bool:
            self.left -= 1
            return self.left < 0 and office.store.update_notice(notice, replaces=replaces)

    events = [event for event in read_events(next(office.events.iterdir()).read_text()) if event is not None]
    if rivals == 1:
        assert reconcile_mail_events(Contended(), events).changed == 1
        assert office.notice().status is NoticeStatus.DELIVERED
    else:
        with pytest.raises(StaleWrite, match="guide:1"):
            reconcile_mail_events(Contended(), events)
