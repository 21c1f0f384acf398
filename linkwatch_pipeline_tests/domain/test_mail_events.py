"""What a provider's events make of a notice, in any order and any number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.mail_events import MailEvent, MailEventKind, after_event
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.transitions import escaped_id, unescaped_id
from linkwatch_pipeline_tests.builders import after
from linkwatch_pipeline_tests.mail_builders import a_notice

OWNER, COPY = "docs-team@example.com", "web@example.com"
KINDS = list(MailEventKind)


def event(kind: MailEventKind, *recipients: str, **changes: Any) -> MailEvent:
    fields: dict[str, Any] = {
        "kind": kind,
        "mail_id": "guide:2",
        "provider_id": "0100-abc",
        "at": after(minutes=5),
        "recipients": recipients or (OWNER,),
        "detail": f"because of {kind.value}" if kind.is_bad_news else "",
    }
    return MailEvent(**fields | changes)


def tried(**changes: Any) -> Notice:
    """A notice of unknown delivery."""
    fields: dict[str, Any] = {
        "status": NoticeStatus.UNKNOWN,
        "attempts": 1,
        "recipient": OWNER,
        "last_error": "the answer was lost",
        "next_attempt_at": after(hours=1),
    }
    return a_notice(**fields | changes)


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        (MailEventKind.SEND, NoticeStatus.SENT, None),
        (MailEventKind.DELIVERY, NoticeStatus.DELIVERED, None),
        (MailEventKind.BOUNCE, NoticeStatus.BOUNCED, "because of bounce"),
        (MailEventKind.COMPLAINT, NoticeStatus.COMPLAINED, "because of complaint"),
        (MailEventKind.REJECT, NoticeStatus.FAILED, "because of reject"),
    ],
)
def test_an_event_ends_the_doubt(kind: MailEventKind, status: NoticeStatus, error: str | None) -> None:
    told = after_event(tried(), event(kind))
    assert (told.status, told.last_error, told.provider_id) == (status, error, "0100-abc")
    assert (told.sent_at, told.next_attempt_at) == (after(minutes=5), None)


@pytest.mark.parametrize("status", [NoticeStatus.PENDING, NoticeStatus.CLAIMED, NoticeStatus.SENDING])
def test_an_event_takes_the_notice_from_whoever_would_send_it_again(status: NoticeStatus) -> None:
    held = tried(status=status, attempts=2, claimed_by="sender", claim_until=after(minutes=9))
    told = after_event(held, event(MailEventKind.DELIVERY))
    assert (told.status, told.claimed_by, told.claim_until) == (NoticeStatus.DELIVERED, None, None)


def test_several_attempts_stay_in_doubt_even_when_one_arrived() -> None:
    told = after_event(tried(attempts=2, last_error="may have it twice"), event(MailEventKind.DELIVERY))
    assert told.last_error == "may have it twice"


def test_what_the_sender_knew_is_kept() -> None:
    sent = tried(status=NoticeStatus.SENT, provider_id="0100-first", sent_at=after(minutes=1))
    told = after_event(sent, event(MailEventKind.DELIVERY))
    assert (told.provider_id, told.sent_at) == ("0100-first", after(minutes=1))


@pytest.mark.parametrize(
    "notice",
    [
        a_notice(),  # nobody ever called a provider
        *(tried(status=status) for status in (NoticeStatus.HELD, NoticeStatus.MUTED, NoticeStatus.DISCARDED)),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_that_cannot_be_changes_nothing(notice: Notice, kind: MailEventKind) -> None:
    assert after_event(notice, event(kind)) == notice


@given(
    kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from([OWNER, COPY])), min_size=1, max_size=8),
    shuffled=st.randoms(),
    status=st.sampled_from([NoticeStatus.SENDING, NoticeStatus.UNKNOWN, NoticeStatus.SENT, NoticeStatus.PENDING]),
)
def test_order_and_repetition_do_not_matter(
    kinds: list[tuple[MailEventKind, str]], shuffled: Any, status: NoticeStatus
) -> None:
    ends = []
    other = kinds + kinds
    shuffled.shuffle(other)
    for order in (kinds, other):
        notice = tried(status=status)
        for kind, recipient in order:
            notice = after_event(notice, event(kind, recipient))
        ends.append(notice.status)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_event_twice_is_nothing_new(kind: MailEventKind) -> None:
    for recipient in (OWNER, COPY):
        once = after_event(tried(), event(kind, recipient))
        assert after_event(once, event(kind, recipient)) == once


def test_a_late_delivery_does_not_hide_a_bounce() -> None:
    bounced = after_event(tried(), event(MailEventKind.BOUNCE))
    assert after_event(bounced, event(MailEventKind.DELIVERY)) == bounced


def test_a_rejected_mail_does_not_seem_sent_by_its_own_late_event() -> None:
    rejected = after_event(tried(), event(MailEventKind.REJECT))
    assert after_event(rejected, event(MailEventKind.SEND)) == rejected


@pytest.mark.parametrize("kind", [MailEventKind.BOUNCE, MailEventKind.COMPLAINT])
def test_what_happened_to_a_copy_is_noted_and_is_not_the_owners(kind: MailEventKind) -> None:
    told = after_event(tried(), event(kind, COPY))
    assert (told.status, told.last_error) == (
        NoticeStatus.SENT,
        f"of somebody who got a copy: because of {kind.value}",
    )
    both = after_event(told, event(MailEventKind.DELIVERY, OWNER))
    assert both.status is NoticeStatus.DELIVERED


def test_a_copy_that_arrived_does_not_prove_that_the_owner_has_the_mail() -> None:
    assert after_event(tried(), event(MailEventKind.DELIVERY, COPY)).status is NoticeStatus.SENT


def test_addresses_are_compared_as_people_write_them() -> None:
    told = after_event(tried(recipient="Docs-Team@Example.com"), event(MailEventKind.BOUNCE, "docs-team@example.COM"))
    assert told.status is NoticeStatus.BOUNCED


def test_no_recipients_means_everybody() -> None:
    assert after_event(tried(), replace(event(MailEventKind.REJECT), recipients=())).status is NoticeStatus.FAILED


@given(st.text())
def test_an_escaped_id_can_be_read_back(text: str) -> None:
    if text.isascii():
        assert unescaped_id(escaped_id(text)) == text


@pytest.mark.parametrize("tag", ["a b", "a.b", "a_3A", "a_", "a_2d", "größe", "_ff"])
def test_what_escaping_cannot_have_made_is_no_id(tag: str) -> None:
    assert unescaped_id(tag) is None
