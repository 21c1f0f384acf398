"""SES's events as they really come: wrapped once, twice or not at all, and what is not an event of ours."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.notify.ses_events import read_events
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.mail_events import MailEvent, MailEventKind
from linkwatch_pipeline_tests.world.ses_server import Accepted, in_queue, in_topic, ses_event

MAIL = Accepted(
    message_id="0100-abc",
    content=b"",
    source="linkwatch@example.com",
    destination=("docs-team@example.com", "web@example.com"),
    tags={"linkwatch-mail": "docs_2eexample_2ecom-a_5fb_3a12"},
    configuration_set="linkwatch",
)
AT = datetime(2026, 9, 28, 10, 0, 5, 123000, tzinfo=UTC)
BOUNCE = MailEvent(
    kind=MailEventKind.BOUNCE,
    mail_id="docs.example.com-a_b:12",
    provider_id="0100-abc",
    at=AT,
    recipients=("docs-team@example.com",),
    detail="the mail came back: Permanent/General, 5.1.1",
)


STAMP = "2026-09-28T10:00:05.123Z"
GREETING = "Successfully validated SNS topic for Amazon SES event publishing."
KEYS = ("eventType", "mail", "bounce", "tags", "Body", "Message", "Records", "Messages", "Type", "TopicArn", "Sns")


def bounce() -> dict[str, Any]:
    return ses_event(MAIL, "Bounce", ["docs-team@example.com"])


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(bounce()),
        json.dumps(in_topic(bounce())),
        json.dumps(in_queue(bounce())),
        json.dumps({"MessageId": "1", "Body": json.dumps(bounce())}),  # raw message delivery
        json.dumps({"Messages": [in_queue(bounce())]}),  # aws sqs receive-message
        json.dumps({"Records": [{"messageId": "1", "body": json.dumps(in_topic(bounce()))}]}),  # Lambda, from SQS
        json.dumps({"Records": [{"EventSource": "aws:sns", "Sns": in_topic(bounce())}]}),  # Lambda, from SNS
        json.dumps([bounce()]),
    ],
    ids=["bare", "sns", "sns-sqs", "sqs", "receive", "lambda-sqs", "lambda-sns", "list"],
)
def test_an_event_is_the_same_in_every_envelope(text: str) -> None:
    assert read_events(text) == [BOUNCE]


def test_a_file_may_hold_one_document_a_line() -> None:
    lines = [json.dumps(in_queue(ses_event(MAIL, kind))) for kind in ("Send", "Delivery")]
    events = read_events("\n".join([*lines, ""]))
    assert [event.kind for event in events if event is not None] == [MailEventKind.SEND, MailEventKind.DELIVERY]


@pytest.mark.parametrize(
    ("kind", "recipients", "detail"),
    [
        ("Send", MAIL.destination, ""),
        ("Delivery", ("web@example.com",), ""),
        ("Complaint", ("web@example.com",), "the recipient reported the mail as unwanted: abuse"),
        ("Reject", MAIL.destination, "the provider took the mail and did not send it: Bad content"),
    ],
)
def test_each_kind_says_whom_it_concerns_and_why(kind: str, recipients: tuple[str, ...], detail: str) -> None:
    (event,) = read_events(json.dumps(ses_event(MAIL, kind, ["web@example.com"])))
    assert event is not None
    assert (event.kind.value, event.recipients, event.detail) == (kind.lower(), recipients, detail)
    assert event.mail_id == "docs.example.com-a_b:12"
    assert event.at.tzinfo is UTC


def test_nobodys_address_and_no_free_words_of_a_server_are_in_the_detail() -> None:
    document = bounce()
    document["bounce"]["bouncedRecipients"][0]["status"] = "5.1.1 <docs-team@example.com>"
    (event,) = read_events(json.dumps(document))
    assert event is not None
    assert event.detail == "the mail came back: Permanent/General, 5.1.1 <(address)>"


@pytest.mark.parametrize("tags", [None, {}, {"linkwatch-mail": []}, {"linkwatch-mail": ["a b"]}, {"other": ["1"]}])
def test_a_mail_without_our_tag_has_the_providers_id_only(tags: dict[str, Any] | None) -> None:
    document = bounce()
    document["mail"]["tags"] = tags
    (event,) = read_events(json.dumps(document))
    assert event is not None
    assert (event.mail_id, event.provider_id) == (None, "0100-abc")


def test_feedback_of_an_identity_is_read_like_an_event() -> None:
    document = bounce()
    document["notificationType"] = document.pop("eventType")
    assert read_events(json.dumps(document)) == [BOUNCE]


@pytest.mark.parametrize(
    "document",
    [
        ses_event(MAIL, "Open"),
        ses_event(MAIL, "DeliveryDelay"),
        ses_event(MAIL, "InventedTomorrow"),
        {"Type": "SubscriptionConfirmation", "TopicArn": "arn:aws:sns:x", "SubscribeURL": "https://sns.example.com/"},
        {"Type": "Notification", "TopicArn": "arn:aws:sns:x", "Message": "Successfully validated SNS topic."},
    ],
)
def test_what_says_nothing_about_a_mail_is_passed_over(document: dict[str, Any]) -> None:
    assert read_events(json.dumps(in_queue(document))) == [None]
    assert read_events(json.dumps(document)) == [None]


def test_the_greeting_of_ses_is_passed_over_bare_too_and_nothing_else_that_is_no_json() -> None:
    """Where the subscription delivers raw, as `deploy/foundation.yaml` has it, no envelope is around it."""
    assert read_events(GREETING) == read_events(json.dumps({"body": GREETING})) == [None]
    assert read_events(f"{GREETING}\n{json.dumps(bounce())}") == [None, BOUNCE]
    for text in (f"Not {GREETING}", "Hello", json.dumps({"Type": "Notification", "TopicArn": "a", "Message": "Hello"})):
        with pytest.raises(InvalidInput, match="not JSON"):
            read_events(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(document=JSON, part=st.sampled_from(("mail", "bounce", "tags", "timestamp", "messageId", "destination")))
def test_whatever_it_is_it_is_read_or_refused(document: Any, part: str) -> None:
    damaged = bounce()
    place = damaged if part in damaged else damaged["mail"]
    place[part] = document
    for text in (json.dumps(document), json.dumps(damaged), json.dumps({"Body": json.dumps(damaged)})):
        with suppress(InvalidInput):
            read_events(text)


def without(*path: str) -> str:
    document = bounce()
    place = document
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("not JSON", "not JSON"),
        ("1", "no JSON object"),
        ('{"eventType": "Bounce"', "not JSON"),
        ('{"hello": "world"}', "neither an event nor an envelope"),
        ('{"eventType": {"a": 1}, "mail": {}}', "its kind is no text"),
        ('{"Body": "not JSON"}', "not JSON"),
        ('{"Type": "Notification", "TopicArn": "a", "Message": "{torn"}', "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"eventType": "Bounce", "mail": 1}', "a Bounce without"),
        (without("mail"), "a Bounce without what it must have: mail, an object."),
        (without("mail", "messageId"), "mail.messageId, a text"),
        (without("bounce"), "a Bounce without"),
        (without("bounce", "bouncedRecipients"), "bounce.bouncedRecipients, a list of objects"),
        (json.dumps({**bounce(), "bounce": [1]}), "a Bounce without"),
        (
            json.dumps(bounce()).replace(STAMP, "0001-01-01T00:00:00+23:59"),
            "have: bounce.timestamp, a moment such as 2026",
        ),
        (json.dumps(bounce()).replace(STAMP, "docs@example.com"), "have: bounce.timestamp, a moment such as 2026"),
        (json.dumps({**bounce(), "mail": {"messageId": "1", "timestamp": 7}, "bounce": {}}), "mail.timestamp, a text"),
        (json.dumps({**bounce(), "bounce": {"bouncedRecipients": [{}]}}), "bouncedRecipients.emailAddress, a text"),
    ],
)
def test_what_is_no_event_is_refused_with_the_mend(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        read_events(text)
    assert "SNS or SQS" in str(refused.value)
    assert "@" not in str(refused.value)
