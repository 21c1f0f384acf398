"""Amazon SES's events as JSON, in whatever envelope they come: bare, from SNS, from SQS, or as a Lambda's input.

Shapes: "Contents of event data that Amazon SES publishes to Amazon SNS", AWS documentation. Nobody's address and no
server's free words get into an event's `detail`: it is shown in logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from linkwatch_pipeline.adapters.notify.provider_words import told_by_provider
from linkwatch_pipeline.adapters.notify.ses import MAIL_TAG
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.mail_events import MailEvent, MailEventKind
from linkwatch_pipeline.domain.transitions import unescaped_id

_KINDS = {
    "Send": MailEventKind.SEND,
    "Reject": MailEventKind.REJECT,
    "Rendering Failure": MailEventKind.REJECT,
    "Delivery": MailEventKind.DELIVERY,
    "Bounce": MailEventKind.BOUNCE,
    "Complaint": MailEventKind.COMPLAINT,
}
# What SES says once to a topic that it is to tell of mails. It is a plain sentence, in an envelope or bare.
_GREETING = "Successfully validated SNS topic"
_MEND = "Give events of Amazon SES as JSON: bare, or as SNS or SQS wrapped them."


def read_events(text: str) -> list[MailEvent | None]:
    """The events of one JSON document, or of one document a line; None for each message that says nothing of a mail.

    Raises: InvalidInput if anything in it is not what it should be. Then none of it is to be used.
    """
    try:
        return [event for document in _documents(text) for event in _unwrapped(document)]
    except RecursionError:
        raise InvalidInput("mail event", "this is nested too deeply", _MEND) from None


def _documents(text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except ValueError:
        return [_parsed(line) for line in text.splitlines() if line.strip()] or [_parsed("")]


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        if text.strip().startswith(_GREETING):
            return _GREETING
        raise InvalidInput("mail event", "this is not JSON", _MEND) from None


def _unwrapped(document: object) -> Iterator[MailEvent | None]:
    if isinstance(document, list):
        for item in document:
            yield from _unwrapped(item)
    elif document == _GREETING:
        yield None
    elif not isinstance(document, Mapping):
        raise InvalidInput("mail event", "this is no JSON object", _MEND)
    elif "eventType" in document or "notificationType" in document:
        yield _event(document)
    elif inner := _inside(document):
        yield from _unwrapped(inner)
    elif "Type" in document and "TopicArn" in document:  # SNS speaking for itself, such as a new subscription
        yield None
    else:
        raise InvalidInput("mail event", "neither an event nor an envelope of one", _MEND)


def _inside(envelope: Mapping[str, Any]) -> object:
    """What an envelope holds; None if it is none."""
    for name in ("Records", "Messages"):  # a Lambda's input, the answer of ReceiveMessage
        if isinstance(envelope.get(name), list):
            return envelope[name]
    for name in ("body", "Body"):  # SQS
        if isinstance(envelope.get(name), str):
            return _parsed(envelope[name])
    if isinstance(envelope.get("Sns"), Mapping):
        return envelope["Sns"]
    if envelope.get("Type", "Notification") == "Notification" and isinstance(envelope.get("Message"), str):
        return _parsed(envelope["Message"])
    return None


def _event(document: Mapping[str, Any]) -> MailEvent | None:
    name = document.get("eventType") or document.get("notificationType")
    if not isinstance(name, str):
        raise InvalidInput("mail event", "its kind is no text", _MEND)
    if name not in _KINDS:  # Open, DeliveryDelay and the like do not say where a mail ended
        return None
    try:
        return _read(_KINDS[name], document)
    except _Lacking as what:
        raise InvalidInput("mail event", f"a {name} without what it must have: {what}", _MEND) from None


class _Lacking(Exception):
    """Of an event, in words: the field, and what has to stand there."""


def _read(kind: MailEventKind, document: Mapping[str, Any]) -> MailEvent:
    mail, told = _object(document, "mail"), _object(document, kind.value) if document.get(kind.value) else {}
    when, where = (told, kind.value) if told.get("timestamp") else (mail, "mail")
    return MailEvent(
        kind=kind,
        mail_id=_mail_id(_object(mail, "tags", "mail.tags") if mail.get("tags") else {}),
        provider_id=_text(mail.get("messageId"), "mail.messageId"),
        at=_moment(when.get("timestamp"), f"{where}.timestamp"),
        recipients=_recipients(kind, told, mail),
        detail=_detail(kind, told),
    )


def _mail_id(tags: Mapping[str, Any]) -> str | None:
    values = tags.get(MAIL_TAG)
    return unescaped_id(values[0]) if isinstance(values, list) and values and isinstance(values[0], str) else None


def _recipients(kind: MailEventKind, told: Mapping[str, Any], mail: Mapping[str, Any]) -> tuple[str, ...]:
    match kind:
        case MailEventKind.BOUNCE:
            return _addresses(told.get("bouncedRecipients"), "bounce.bouncedRecipients", within="emailAddress")
        case MailEventKind.COMPLAINT:
            return _addresses(told.get("complainedRecipients"), "complaint.complainedRecipients", within="emailAddress")
        case MailEventKind.DELIVERY:
            return _addresses(told.get("recipients"), "delivery.recipients")
        case _:
            return _addresses(mail.get("destination") or [], "mail.destination")


def _addresses(found: object, where: str, *, within: str | None = None) -> tuple[str, ...]:
    """Args: within: the field of each that is the address; None: each is one."""
    if not isinstance(found, list) or (within is not None and not all(isinstance(each, Mapping) for each in found)):
        raise _Lacking(f"{where}, a list of {'texts' if within is None else 'objects'}")
    if within is None:
        return tuple(_text(each, where) for each in found)
    return tuple(_text(each.get(within), f"{where}.{within}") for each in found)


def _detail(kind: MailEventKind, told: Mapping[str, Any]) -> str:
    match kind:
        case MailEventKind.BOUNCE:
            codes = dict.fromkeys(str(item.get("status") or "") for item in told["bouncedRecipients"])
            words = ", ".join([f"{told.get('bounceType')}/{told.get('bounceSubType')}", *filter(None, codes)])
            return told_by_provider("the mail came back: ", words)
        case MailEventKind.COMPLAINT:
            kind_of = told.get("complaintFeedbackType") or told.get("complaintSubType") or "no reason given"
            return told_by_provider("the recipient reported the mail as unwanted: ", str(kind_of))
        case MailEventKind.REJECT:
            return told_by_provider("the provider took the mail and did not send it: ", str(told.get("reason") or "-"))
        case _:
            return ""


def _object(document: Mapping[str, Any], name: str, where: str = "") -> Mapping[str, Any]:
    found = document.get(name)
    if not isinstance(found, Mapping):
        raise _Lacking(f"{where or name}, an object")
    return found


def _moment(text: object, where: str) -> datetime:
    try:
        at = datetime.fromisoformat(_text(text, where))
        return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _Lacking(f"{where}, a moment such as 2026-09-28T10:00:05Z") from None


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise _Lacking(f"{where}, a text")
    return value
