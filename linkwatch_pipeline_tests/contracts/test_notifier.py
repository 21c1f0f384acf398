"""What every notifier promises (`ports.Notifier`), run on each adapter; `raw` is what arrived on the other side."""

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
from linkwatch_pipeline.adapters.notify.ses import SesNotifier
from linkwatch_pipeline.adapters.notify.smtp import SmtpNotifier, SmtpSecurity, SmtpServer
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.ports import Notifier
from linkwatch_pipeline_tests.mail_builders import a_mail
from linkwatch_pipeline_tests.world.mail_server import PASSWORD, USERNAME, MailServer
from linkwatch_pipeline_tests.world.ses_server import SesServer


@dataclass(frozen=True)
class NotifierCase:
    """A notifier, and the mails that it handed over so far."""

    notifier: Notifier
    raw: Callable[[], list[bytes]]

    def read(self) -> list[EmailMessage]:
        return [email.message_from_bytes(content, policy=policy.default) for content in self.raw()]

    def sent(self, **changes: Any) -> EmailMessage:
        self.notifier.send(a_mail(**changes))
        (message,) = self.read()
        return message


def files_case(folder: Path, _: pytest.FixtureRequest) -> NotifierCase:
    return NotifierCase(FileNotifier(folder), lambda: [path.read_bytes() for path in sorted(folder.glob("*.eml"))])


def smtp_case(_: Path, request: pytest.FixtureRequest) -> NotifierCase:
    server: MailServer = request.getfixturevalue("mail_server")
    server.accepted.clear()
    where = SmtpServer(
        host="127.0.0.1",
        port=server.port,
        security=SmtpSecurity.STARTTLS,
        username=USERNAME,
        password=PASSWORD,
    )
    return NotifierCase(
        SmtpNotifier(where, tls=server.trust),
        lambda: [envelope.original_content or b"" for envelope in server.accepted],
    )


def ses_case(_: Path, request: pytest.FixtureRequest) -> NotifierCase:
    server: SesServer = request.getfixturevalue("ses_server")
    server.accepted.clear()
    server.sender = "linkwatch@example.com"
    notifier = SesNotifier(request.getfixturevalue("ses_at_server"), configuration_set="linkwatch")
    return NotifierCase(notifier, lambda: [mail.content for mail in server.accepted])


@pytest.fixture(
    params=[
        pytest.param(files_case, id="files"),
        pytest.param(smtp_case, id="smtp"),
        pytest.param(ses_case, id="ses"),
    ]
)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> NotifierCase:
    made = request.param(tmp_path, request)
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
        {"transition_id": "digest:1\nX-Evil: 1", "transition_ids": ("guide:2",)},
        {"transition_id": "digest:1", "transition_ids": ("guide:2\nX-Evil: 1",)},
        {"transition_id": "../../guide:2"},
    ],
)
def test_an_address_or_id_that_is_none_is_refused_for_good(case: NotifierCase, changes: dict[str, Any]) -> None:
    with pytest.raises(DeliveryError) as refused:
        case.notifier.send(a_mail(**changes))
    assert refused.value.kind is DeliveryFailure.PERMANENT
    assert case.read() == []


def test_a_mail_that_tells_several_transitions_names_itself_and_all_of_them(case: NotifierCase) -> None:
    told = tuple(f"docs.example.com-a-rather-long-page-name-{number}:{number}" for number in range(300))
    message = case.sent(transition_id="digest:2026-09-28T09:00:00Z~retry-1:0a1b2c3d4e5f", transition_ids=told)
    assert message["X-Linkwatch-Mail"] == "digest:2026-09-28T09:00:00Z~retry-1:0a1b2c3d4e5f"
    assert tuple(message["X-Linkwatch-Transition"].split(", ")) == told
    assert max(len(line) for line in message.as_bytes().splitlines()) <= 998


def test_the_ids_of_a_thread_travel_as_they_are_however_long(case: NotifierCase) -> None:
    """An encoded one would be equal to no other, and the thread would fall apart."""
    thread = f"<{'a' * 90}.thread@linkwatch.invalid>"
    case.notifier.send(a_mail(references=(thread,), message_id=f"<{'b' * 90}@linkwatch.invalid>"))
    (raw,) = case.raw()
    assert f"References: {thread}\r\n".encode() in raw
    assert f"In-Reply-To: {thread}\r\n".encode() in raw
    assert f"Message-ID: <{'b' * 90}@linkwatch.invalid>".encode() in raw


def test_every_header_is_plain_ascii_on_the_way(case: NotifierCase) -> None:
    case.notifier.send(a_mail(subject="Größe 手册"))
    (raw,) = case.raw()
    assert raw.partition(b"\r\n\r\n")[0].isascii()
