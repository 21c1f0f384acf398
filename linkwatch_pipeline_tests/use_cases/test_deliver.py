"""Delivery on a real store: one mail per change, whatever fails and wherever it stops."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.notify.files import FileNotifier
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.notices import CLAIM_FOR, LOST_ANSWER, Notice, NoticeStatus
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices, due_notices
from linkwatch_pipeline.use_cases.send_mail import MOST_ATTEMPTS_WITHOUT_WORD, WAIT_FOR_WORD
from linkwatch_pipeline_tests.use_cases.office import SENDER, Killed, Office, refusal


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    store.put_owner(Owner(team="docs-team", address="docs-team@example.com"))
    yield Office(store)
    store.close()


def test_a_due_notice_is_sent_once(office: Office) -> None:
    office.break_link("guide")
    assert office.deliver() == DeliveryReport(sent=1)
    assert office.deliver() == DeliveryReport()
    (mail,) = office.provider.accepted
    assert (mail.sender, mail.recipient) == (SENDER, "docs-team@example.com")
    assert mail.transition_id == "guide:1"
    notice = office.notice()
    assert (notice.status, notice.attempts, notice.provider_id) == (NoticeStatus.SENT, 1, "provider-1")
    assert notice.sent_at == office.clock.now()
    assert (notice.recipient, notice.claimed_by, notice.last_error) == ("docs-team@example.com", None, None)


def test_notices_are_sent_oldest_first_and_old_ones_too(office: Office) -> None:
    for name in ("c-oldest", "b", "a-newest"):
        office.break_link(name)
        office.clock.advance(timedelta(days=40))
    assert office.deliver() == DeliveryReport(sent=3)
    assert [mail.transition_id for mail in office.provider.accepted] == ["c-oldest:1", "b:1", "a-newest:1"]


def test_a_limit_leaves_the_rest_waiting(office: Office) -> None:
    for name in ("a", "b", "c"):
        office.break_link(name)
    assert office.deliver(limit=2) == DeliveryReport(sent=2, waiting=1)
    assert office.deliver(limit=2) == DeliveryReport(sent=1)


def test_a_mail_that_would_outlast_its_process_is_not_begun(office: Office) -> None:
    for name in ("a", "b", "c"):
        office.break_link(name)
    slow = timedelta(seconds=13)
    office.provider.before_answering = lambda: office.clock.advance(slow)
    assert office.deliver(life=2 * slow + timedelta(seconds=10)) == DeliveryReport(sent=2, waiting=1)
    assert {notice.status for notice in office.store.notices()} == {NoticeStatus.SENT, NoticeStatus.PENDING}
    assert office.deliver(life=timedelta(minutes=5)) == DeliveryReport(sent=1)


def test_a_long_digest_needs_more_time_than_a_short_one(office: Office) -> None:
    office.employ(delivery=Delivery.DIGEST)
    links = {f"link-{n}": f"https://docs.example.com/{n}" for n in range(50)}
    office.watch(**links)
    office.run(dict.fromkeys(links, 404))
    assert office.deliver(life=timedelta(seconds=24)) == DeliveryReport(waiting=50)
    assert office.deliver(life=timedelta(seconds=26)) == DeliveryReport(sent=50)


def test_a_notice_that_is_not_released_waits(office: Office) -> None:
    office.break_link("guide")
    release_at = office.clock.now() + timedelta(minutes=30)
    held = office.store.claim_notice("guide:1", by="planner", now=office.clock.now())
    assert held is not None
    office.store.save_notice(
        replace(held, status=NoticeStatus.PENDING, claimed_by=None, release_at=release_at), claimed_by="planner"
    )
    assert office.deliver() == DeliveryReport(waiting=1)
    office.clock.advance(timedelta(minutes=30))
    assert office.deliver() == DeliveryReport(sent=1)


def test_the_attempt_is_written_down_before_the_provider_is_called(office: Office) -> None:
    seen: list[Notice] = []
    office.provider.before_answering = lambda: seen.append(office.notice())
    office.break_link("guide")
    office.deliver()
    (during,) = seen
    assert (during.status, during.attempts, during.recipient) == (NoticeStatus.SENDING, 1, "docs-team@example.com")


def test_other_teams_with_the_same_url_get_copies(office: Office) -> None:
    office.store.put_owner(Owner(team="web", address="web@example.com"))
    office.store.put_owner(Owner(team="twin", address="docs-team@example.com"))
    office.break_link("guide", also_used_by=("web", "twin", "gone"))
    office.deliver()
    assert office.provider.accepted[0].copies == ("web@example.com",)


def test_without_an_address_the_notice_waits_and_says_so(office: Office) -> None:
    office.break_link("guide", owner="nobody-yet")
    assert office.deliver() == DeliveryReport(without_owner=1)
    notice = office.notice()
    assert (notice.status, notice.attempts, notice.claimed_by) == (NoticeStatus.PENDING, 0, None)
    assert notice.last_error == "team 'nobody-yet' has no address, so nobody can be told"
    assert (notice.next_attempt_at, office.notice()) == (None, notice)
    assert office.deliver() == DeliveryReport(without_owner=1)
    assert office.notice() == notice

    office.store.put_owner(Owner(team="nobody-yet", address="new@example.com"))
    assert office.deliver() == DeliveryReport(sent=1)
    assert office.provider.accepted[0].recipient == "new@example.com"
    assert office.notice().last_error is None


def test_a_link_without_owner_is_told_to_the_owner_set_later(office: Office) -> None:
    office.break_link("guide", owner=None)
    assert office.deliver() == DeliveryReport(without_owner=1)
    link = office.store.get_link("guide")
    assert link is not None
    assert due_notices(office.store, now=office.clock.now()) == []
    office.store.save_link(replace(link, owner="docs-team"), replaces=link)
    assert [n.transition_id for n in due_notices(office.store, now=office.clock.now())] == ["guide:1"]
    assert office.deliver() == DeliveryReport(sent=1)


def test_what_was_not_accepted_is_tried_later_and_later(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [refusal(DeliveryFailure.NOT_ACCEPTED)] * 5
    waits = []
    for _ in range(5):
        assert office.deliver() == DeliveryReport(retried=1)
        notice = office.notice()
        assert notice.next_attempt_at is not None
        waits.append((notice.next_attempt_at - office.clock.now()) // timedelta(minutes=1))
        office.clock.advance(notice.next_attempt_at - office.clock.now() - timedelta(seconds=1))
        assert office.deliver() == DeliveryReport(waiting=1)
        office.clock.advance(timedelta(seconds=1))
    assert waits == [1, 5, 15, 60, 60]
    assert office.notice().last_error == "the provider said no"
    assert office.deliver() == DeliveryReport(sent=1)
    assert (office.notice().attempts, office.notice().last_error) == (6, None)


def test_what_is_refused_for_good_is_parked_for_a_person(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [refusal(DeliveryFailure.PERMANENT)]
    assert office.deliver() == DeliveryReport(failed=1)
    office.clock.advance(timedelta(days=30))
    assert office.deliver() == DeliveryReport(waiting=1)
    assert office.notice().status is NoticeStatus.FAILED
    assert office.provider.accepted == []


def test_a_lost_answer_is_unknown_and_later_repeated_as_a_possible_duplicate(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [refusal(DeliveryFailure.UNKNOWN)]
    assert office.deliver() == DeliveryReport(unknown=1)
    assert office.notice().status is NoticeStatus.UNKNOWN
    assert office.deliver() == DeliveryReport(waiting=1)
    office.clock.advance(WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport(sent=1)
    first, second = office.provider.accepted
    assert first.message_id == second.message_id
    assert "may have this mail already" not in first.text
    assert "may have this mail already" in second.text
    assert office.notice().last_error == LOST_ANSWER


def test_the_doubt_survives_a_later_refusal(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [refusal(DeliveryFailure.UNKNOWN), refusal(DeliveryFailure.NOT_ACCEPTED)]
    office.deliver()
    office.clock.advance(WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport(retried=1)
    assert office.notice().last_error == f"{LOST_ANSWER}; the provider said no"
    office.clock.advance(WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport(sent=1)
    assert "may have this mail already" in office.provider.accepted[-1].text


@pytest.mark.parametrize("trouble", [refusal(DeliveryFailure.UNKNOWN), RuntimeError("a fault of ours")])
def test_a_provider_that_never_answers_does_not_fill_the_mailbox(office: Office, trouble: Exception) -> None:
    office.break_link("guide")
    calls: list[None] = []
    office.provider.before_answering = lambda: calls.append(None)
    office.provider.answers = [trouble] * 100
    for _ in range(50):
        office.deliver()
        office.clock.advance(WAIT_FOR_WORD)
    assert len(calls) == MOST_ATTEMPTS_WITHOUT_WORD
    assert office.notice().status is NoticeStatus.UNKNOWN
    assert office.deliver() == DeliveryReport(waiting=1)


def test_a_crash_while_sending_is_repeated_as_a_possible_duplicate(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [Killed()]
    with pytest.raises(Killed):
        office.deliver()
    assert office.notice().status is NoticeStatus.SENDING
    assert office.deliver(claimant="sender-2") == DeliveryReport(waiting=1)
    office.clock.advance(CLAIM_FOR)
    assert office.deliver(claimant="sender-2") == DeliveryReport(sent=1)
    assert "may have this mail already" in office.provider.accepted[-1].text
    assert office.notice().attempts == 2


def test_the_doubt_outlives_a_sender_that_dies_between_claim_and_attempt(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [Killed()]
    with pytest.raises(Killed):
        office.deliver()
    office.clock.advance(CLAIM_FOR)
    assert office.store.claim_notice("guide:1", by="dead", now=office.clock.now()) is not None
    office.clock.advance(CLAIM_FOR)
    assert office.deliver() == DeliveryReport(sent=1)
    assert "may have this mail already" in office.provider.accepted[-1].text


def test_a_process_that_always_dies_while_sending_is_stopped(office: Office) -> None:
    office.break_link("guide")
    office.provider.answers = [Killed() for _ in range(MOST_ATTEMPTS_WITHOUT_WORD)]
    for number in range(MOST_ATTEMPTS_WITHOUT_WORD):
        with pytest.raises(Killed):
            office.deliver(claimant=f"sender-{number}")
        office.clock.advance(CLAIM_FOR)
    assert office.deliver() == DeliveryReport(unknown=1)
    assert office.notice().status is NoticeStatus.UNKNOWN


def test_a_crash_between_claim_and_attempt_costs_only_time(office: Office) -> None:
    office.break_link("guide")
    office.store.claim_notice("guide:1", by="dead", now=office.clock.now())
    assert office.deliver() == DeliveryReport(waiting=1)
    office.clock.advance(CLAIM_FOR)
    assert office.deliver() == DeliveryReport(sent=1)
    assert "may have this mail already" not in office.provider.accepted[0].text


def test_a_sender_that_overslept_its_claim_does_not_overwrite_the_other(office: Office) -> None:
    office.break_link("guide")

    def be_overtaken() -> None:
        office.provider.before_answering = lambda: None
        office.clock.advance(CLAIM_FOR)
        assert office.deliver(claimant="sender-2") == DeliveryReport(sent=1)

    office.provider.before_answering = be_overtaken
    office.provider.answers = []
    office.deliver(claimant="sender-1")
    assert office.notice().provider_id == "provider-1"
    assert office.notice().attempts == 2


def test_one_bad_notice_does_not_silence_the_others(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b", "c"):
        office.break_link(name)
    office.provider.answers = [RuntimeError("a fault of ours")]
    with caplog.at_level(logging.ERROR):
        assert office.deliver() == DeliveryReport(unknown=1, sent=2)
    assert "sending failed" in caplog.text
    assert office.notice("a:1").last_error == (f"{LOST_ANSWER}; internal fault while sending: RuntimeError")


def test_mails_end_up_in_files(office: Office, tmp_path: Path) -> None:
    office.break_link("guide")
    notifier = FileNotifier(tmp_path / "mail")
    report = deliver_notices(office.store, notifier, clock=office.clock, sender=SENDER, claimant="s")
    assert report == DeliveryReport(sent=1)
    assert office.notice().provider_id == "guide_3a1.eml"
    assert "404 Not Found" in (tmp_path / "mail" / "guide_3a1.eml").read_text()


def test_the_report_knows_what_is_unsent() -> None:
    assert DeliveryReport(sent=3).unsent == 0
    assert DeliveryReport(sent=3, retried=1, failed=1, unknown=1, waiting=1, without_owner=1).unsent == 5


def test_a_mail_that_cannot_be_composed_is_certainly_not_sent(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.break_link("guide")
    with monkeypatch.context() as patched:
        patched.setattr("linkwatch_pipeline.use_cases.send_mail.compose", lambda *_, **__: 1 / 0)
        assert office.deliver() == DeliveryReport(retried=1)
    assert (office.notice().last_error or "").startswith("internal fault while composing: ZeroDivisionError")
    office.clock.advance(timedelta(minutes=1))
    assert office.deliver() == DeliveryReport(sent=1)
    assert "may have this mail already" not in office.provider.accepted[-1].text
