"""A Mail as an RFC 5322 message, the same for every transport. Nothing in a Mail can add a header of its own."""

from __future__ import annotations

import re
from datetime import UTC
from email.errors import MessageError
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy, Policy
from email.utils import format_datetime, parseaddr

from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.ports import Mail

TRANSITION_HEADER = "X-Linkwatch-Transition"
MAIL_HEADER = "X-Linkwatch-Mail"
_MESSAGE_ID = re.compile(r"<[A-Za-z0-9._-]+@[A-Za-z0-9.-]+>")
_TRANSITION_ID = re.compile(r"[A-Za-z0-9._-]+:[0-9]+")
_MAIL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:~ -]*")
# Longer lines may not travel as they are (RFC 5322 section 2.1.1 allows 998).
_LONGEST_PLAIN_LINE = 900
# What a header is made of must not end its line, and invisible characters have no place in one.
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


class _IdsHeader(UnstructuredHeader, BaseHeader):
    """Ids, one a line and never encoded: mail programs compare them as they stand, however long they are.

    The standard library would write a long one as an encoded word, and threads would fall apart.
    """

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: " + f"{policy.linesep} ".join(str(self).split()) + policy.linesep


def _policy() -> EmailPolicy[EmailMessage]:
    headers = HeaderRegistry()
    for name in ("references", "in-reply-to", TRANSITION_HEADER.lower(), MAIL_HEADER.lower()):
        headers.map_to_type(name, _IdsHeader)
    return SMTP.clone(header_factory=headers)


_POLICY = _policy()


def to_message(mail: Mail) -> EmailMessage:
    """The message with a text part and an HTML alternative.

    Raises: DeliveryError (permanent) when an address or an id of the mail is not one.
    """
    try:
        return _build(mail)
    except (ValueError, IndexError, MessageError) as exc:
        raise DeliveryError(
            f"the mail for {mail.transition_id!r} cannot be written: {exc}", DeliveryFailure.PERMANENT
        ) from exc


def _build(mail: Mail) -> EmailMessage:
    message = EmailMessage(policy=_POLICY)
    message["From"] = _address(mail.sender)
    message["To"] = _address(mail.recipient)
    if mail.copies:
        message["Cc"] = [_address(copy) for copy in mail.copies]
    message["Subject"] = _INVISIBLE.sub(" ", mail.subject)
    message["Date"] = format_datetime(mail.date.astimezone(UTC))
    message["Message-ID"] = _id(mail.message_id)
    if mail.references:
        message["References"] = " ".join(_id(reference) for reference in mail.references)
        message["In-Reply-To"] = _id(mail.references[-1])
    message["Auto-Submitted"] = "auto-generated"
    _name_transitions(message, mail)
    message.set_content(mail.text, charset="utf-8", cte=_encoding(mail.text))
    message.add_alternative(mail.html, subtype="html", charset="utf-8", cte=_encoding(mail.html))
    return message


def address_spec(text: str) -> str:
    """The bare address, as envelopes have it. Raises ValueError if it is none."""
    return _address(text).addr_spec


def _name_transitions(message: EmailMessage, mail: Mail) -> None:
    """A mail that tells one transition is named after it; one that tells several has an id of its own."""
    told = mail.transition_ids or (mail.transition_id,)
    for transition_id in told:
        if not _TRANSITION_ID.fullmatch(transition_id):
            raise ValueError(f"{transition_id!r} is not a transition id")
    if not _MAIL_ID.fullmatch(mail.transition_id):
        raise ValueError(f"{mail.transition_id!r} is not the id of a mail")
    if mail.transition_ids:
        message[MAIL_HEADER] = mail.transition_id
    message[TRANSITION_HEADER] = ", ".join(told)


def _address(text: str) -> Address:
    """`name@host.example`, or with a name before it in angle brackets."""
    name, spec = parseaddr(text)
    if not spec or _INVISIBLE.search(text):
        raise ValueError(f"{text!r} is not an e-mail address")
    return Address(display_name=name, addr_spec=spec)


def _id(text: str) -> str:
    if not _MESSAGE_ID.fullmatch(text):
        raise ValueError(f"{text!r} is not a message id")
    return text


def _encoding(text: str) -> str:
    """Plain where that survives every transport, so that a mail in a file can be read and searched as it is."""
    plain = text.isascii() and all(len(line) <= _LONGEST_PLAIN_LINE for line in text.splitlines())
    return "7bit" if plain else "quoted-printable"
