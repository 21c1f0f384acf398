"""What every notifier promises (`ports.Notifier`), run on each adapter; `read` is what arrived on the other side."""

from __future__ import annotations

import email
from collections.abc import Callable
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.notify.files import FileNotifier
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.ports import Notifier
from linkwatch_pipeline_tests.mail_builders import a_mail


@dataclass(frozen=True)
class NotifierCase:
    """A notifier, and the mails that it handed over so far."""

    notifier: Notifier
    read: Callable[[], list[EmailMessage]]

    def sent(self, **changes: Any) -> EmailMessage:
        self.notifier.send(a_mail(**changes))
        (message,) = self.read()
        return message


def files_case(folder: Path) -> NotifierCase:
    def read() -> list[EmailMessage]:
        found = [path.read_bytes() for path in sorted(folder.glob("*.eml"))]
        return [email.message_from_bytes(content, policy=policy.default) for content in found]

    return NotifierCase(FileNotifier(folder), read)


@pytest.fixture(params=[pytest.param(files_case, id="files")])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> NotifierCase:
    made = request.param(tmp_path)
    assert isinstance(made, NotifierCase)
    return made


def part(message: EmailMessage, subtype: str) -> str:
    """A part's text; lines end with CRLF on the way."""
    body = message.get_body((subtype,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def test_a_mail_arrives_with_all_its_headers(case: NotifierCase) -> None:
    message = case.sent(copies=("a@example.com", "b@example.com"))
    assert message["From"] == "linkwatch@example.com"
    assert message["To"] == "docs-team@example.com"
    assert message["Cc"] == "a@example.com, b@example.com"
    assert message["Subject"] == "[linkwatch] Broken: guide"
    assert message["Date"].datetime == a_mail().date
    assert message["Message-ID"] == "<guide_3a2@linkwatch.invalid>"
    assert message["References"] == "<guide.thread@linkwatch.invalid>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["X-Linkwatch-Transition"] == "guide:2"
    assert not message.defects


def test_a_mail_arrives_as_text_and_as_html(case: NotifierCase) -> None:
    message = case.sent()
    assert message.get_content_type() == "multipart/alternative"
    assert [p.get_content_type() for p in message.iter_parts()] == ["text/plain", "text/html"]
    assert part(message, "plain") == a_mail().text
    assert part(message, "html") == a_mail().html


@pytest.mark.parametrize(
    "text",
    [
        "Größe: 3 µs, 手册 \N{FAMILY}\n",
        "x" * 3_000 + "\n",
        ".\n..\nFrom here\n",
        "a=b =3D\n",
        "\n",
        "end without newline\n",
    ],
)
def test_any_text_arrives_as_it_was(case: NotifierCase, text: str) -> None:
    message = case.sent(text=text, html=f"<p>{text}</p>\n")
    assert part(message, "plain") == text
    assert part(message, "html") == f"<p>{text}</p>\n"


def test_no_line_on_the_way_is_longer_than_a_transport_must_carry(case: NotifierCase) -> None:
    message = case.sent(text="x" * 3_000 + "\n", html="<p>" + "y" * 3_000 + "</p>\n")
    assert max(len(line) for line in message.as_bytes().splitlines()) <= 998


def test_the_provider_names_what_it_accepted(case: NotifierCase) -> None:
    first = case.notifier.send(a_mail())
    second = case.notifier.send(a_mail(transition_id="guide:3", message_id="<guide_3a3@linkwatch.invalid>"))
    assert first
    assert second
    assert first != second


def test_a_subject_cannot_add_a_header(case: NotifierCase) -> None:
    message = case.sent(subject="[linkwatch] Broken\r\nBcc: victim@example.org\n\nbody\u202e\u2028x")
    assert message["Bcc"] is None
    assert message["Subject"] == "[linkwatch] Broken Bcc: victim@example.org body x"
    assert part(message, "plain") == a_mail().text


def test_a_subject_beyond_ascii_arrives(case: NotifierCase) -> None:
    subject = "[linkwatch] Broken: " + "Größe-手册-" * 20
    assert case.sent(subject=subject)["Subject"] == subject


def test_a_sender_may_have_a_name(case: NotifierCase) -> None:
    message = case.sent(sender='"Link watch, handbook" <linkwatch@example.com>')
    (address,) = message["From"].addresses
    assert (address.display_name, address.addr_spec) == ("Link watch, handbook", "linkwatch@example.com")


@pytest.mark.parametrize(
    "changes",
    [
        {"recipient": "docs@example.com\r\nBcc: victim@example.org"},
        {"recipient": "nobody"},
        {"recipient": ""},
        {"recipient": "a b@example.com"},
        {"copies": ("docs@example.com\nX-Evil: 1",)},
        {"sender": "linkwatch@example.com\nX-Evil: 1"},
        {"message_id": "<guide@linkwatch.invalid>\r\nX-Evil: 1"},
        {"references": ("<a@b>\nX-Evil: 1",)},
        {"transition_id": "guide:2\nX-Evil: 1"},
        {"transition_id": "../../guide:2"},
    ],
)
def test_an_address_or_id_that_is_none_is_refused_for_good(case: NotifierCase, changes: dict[str, Any]) -> None:
    with pytest.raises(DeliveryError) as refused:
        case.notifier.send(a_mail(**changes))
    assert refused.value.kind is DeliveryFailure.PERMANENT
    assert case.read() == []
