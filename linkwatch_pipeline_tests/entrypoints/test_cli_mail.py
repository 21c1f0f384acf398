"""Mails that leave the machine, and the events that come back, as a person has them on the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import trustme

from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.world.mail_server import DROP, PASSWORD, USERNAME, MailServer
from linkwatch_pipeline_tests.world.ses_server import Accepted, in_queue, ses_event

OWNER = "docs-team@example.com"


@pytest.fixture
def broken(terminal: Terminal) -> Terminal:
    """A terminal whose home has a notice to send."""
    url = "https://docs.example.com/guide"
    terminal.fine("register", "guide", url, "--owner", "docs-team", "--notify", OWNER)
    terminal.fine("record", "guide", url, "--sequence", "0", "--status", "404")
    return terminal


@pytest.fixture
def mailing(
    mail_server: MailServer, mail_authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MailServer:
    """The mail server, with an environment that says how to use it."""
    mail_server.accepted.clear()
    mail_authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    for name, value in {
        "SSL_CERT_FILE": tmp_path / "authority.pem",
        "LINKWATCH_MAIL": "smtp",
        "LINKWATCH_MAIL_FROM": "linkwatch@example.com",
        "LINKWATCH_SMTP_HOST": "127.0.0.1",
        "LINKWATCH_SMTP_PORT": mail_server.port,
        "LINKWATCH_SMTP_USERNAME": USERNAME,
        "LINKWATCH_SMTP_PASSWORD_FILE": tmp_path / "password",
    }.items():
        monkeypatch.setenv(name, str(value))
    return mail_server


def test_a_mail_goes_through_the_server_that_the_environment_names(broken: Terminal, mailing: MailServer) -> None:
    assert broken.fine("deliver").out == "sent 1, to 127.0.0.1\n"
    (taken,) = mailing.accepted
    assert taken.rcpt_tos == [OWNER]
    assert list((broken.home / "mail").iterdir()) == []
    everything = b"".join(file.read_bytes() for file in broken.home.rglob("*") if file.is_file())
    assert PASSWORD.encode() not in everything


def test_an_unknown_authority_is_not_trusted(
    broken: Terminal, mailing: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    said = broken.run("deliver")
    assert (said.code, mailing.accepted) == (1, [])
    (notice,) = broken.fine("outbox", "--json").document
    assert notice["status"] == "pending"
    assert "certificate verify failed" in notice["last_error"]


def test_a_person_ends_the_doubt_about_a_mail(broken: Terminal, mailing: MailServer) -> None:
    mailing.faults["END"] = DROP
    assert broken.run("deliver").code == 1
    mailing.faults.clear()
    assert broken.fine("deliver", "--again", "guide:1").out == "guide:1: pending\nsent 1, to 127.0.0.1\n"
    assert len(mailing.accepted) == 2
    assert "only an unknown one is in doubt" in broken.refused("deliver", "--arrived", "guide:1")


@pytest.mark.parametrize(
    ("removed", "words"),
    [
        ("LINKWATCH_SMTP_PASSWORD_FILE", "smtp_username goes with a password"),
        ("LINKWATCH_SMTP_USERNAME", "set without smtp_username"),
    ],
)
def test_a_name_without_a_password_or_the_other_way_round_is_refused(
    broken: Terminal, mailing: MailServer, monkeypatch: pytest.MonkeyPatch, removed: str, words: str
) -> None:
    monkeypatch.delenv(removed)
    said = broken.run("deliver")
    assert said.code == 2
    assert words in said.err
    (notice,) = broken.fine("outbox", "--json").document
    assert (notice["status"], notice["attempts"]) == ("pending", 0)


def test_a_fixture_home_never_mails_but_to_files(fixture_home: Terminal, mailing: MailServer) -> None:
    said = fixture_home.run("deliver")
    assert said.code == 2
    assert "a fixture home mails only to files" in said.err


def test_ses_without_a_region_is_refused(
    broken: Terminal, aws_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKWATCH_MAIL", "ses")
    monkeypatch.setenv("LINKWATCH_MAIL_FROM", "linkwatch@example.com")
    monkeypatch.setenv("LINKWATCH_SES_CONFIGURATION_SET", "linkwatch")
    said = broken.run("deliver")
    assert said.code == 2
    assert "Set ses_region" in said.err


def test_mails_go_to_ses_when_that_is_set(
    broken: Terminal, aws_environment: None, ses_server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from linkwatch_pipeline_tests.world.ses_server import SesServer

    assert isinstance(ses_server, SesServer)
    ses_server.accepted.clear()
    for name, value in {
        "AWS_ENDPOINT_URL_SESV2": ses_server.url,
        "LINKWATCH_MAIL": "ses",
        "LINKWATCH_MAIL_FROM": "linkwatch@example.com",
        "LINKWATCH_SES_CONFIGURATION_SET": "linkwatch",
        "LINKWATCH_SES_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    assert broken.fine("deliver").out == "sent 1, to Amazon SES\n"
    assert [mail.destination for mail in ses_server.accepted] == [(OWNER,)]


def event(kind: str, *, tag: str = "guide_3a1", recipients: Sequence[str] = ()) -> str:
    mail = Accepted(
        message_id="0100-abc",
        content=b"",
        source="linkwatch@example.com",
        destination=(OWNER,),
        tags={"linkwatch-mail": tag},
        configuration_set="linkwatch",
    )
    return json.dumps(in_queue(ses_event(mail, kind, recipients)))


class TestMailEvents:
    @pytest.fixture
    def sent(self, broken: Terminal) -> Terminal:
        broken.fine("deliver")
        return broken

    def test_a_file_of_events_moves_the_notice(self, sent: Terminal, tmp_path: Path) -> None:
        (tmp_path / "events.jsonl").write_text("\n".join(event(kind) for kind in ("Send", "Delivery", "Open")))
        said = sent.fine("mail-events", str(tmp_path / "events.jsonl"), "--json")
        assert said.document == {
            "changed": 1,  # `sent` was known already
            "unchanged": 1,
            "ignored": 1,
            "unmatched": [],
            "bad_news": [],
            "unreadable": [],
        }
        assert sent.fine("outbox", "--json").document[0]["status"] == "delivered"

    def test_a_folder_is_read_by_name_and_a_bad_file_does_not_stop_the_others(
        self, sent: Terminal, tmp_path: Path
    ) -> None:
        events = tmp_path / "events"
        events.mkdir()
        (events / "1.json").write_text(event("Delivery"))
        (events / "2.json").write_bytes(b'{"half": "\xff')
        (events / "3.json").write_text(event("Delivery") + "\nand a torn line")
        (events / "4.json").write_text(event("Complaint"))
        (events / "5.json").write_text("[" * 100_000)
        (events / "6.json").write_text(event("Delivery", tag="other_3a9"))
        (events / "notes.txt").write_text("not an event")
        (events / "7.json").mkdir()
        said = sent.run("mail-events", str(events), "--json")
        assert said.code == 1
        assert [item["file"] for item in said.document["unreadable"]] == ["2.json", "3.json", "5.json", "7.json"]
        assert (said.document["changed"], said.document["unmatched"]) == (2, ["other:9"])
        assert said.err.count("linkwatch: ") == 4
        assert "Traceback" not in said.err
        assert sent.fine("outbox", "--json").document[0]["status"] == "complained"

    def test_a_bounce_is_said_by_team_and_ends_with_one(self, sent: Terminal, tmp_path: Path) -> None:
        (tmp_path / "bounce.json").write_text(event("Bounce"))
        for changed in (1, 0):
            said = sent.run("mail-events", str(tmp_path / "bounce.json"))
            assert said.code == 1
            assert said.out.splitlines() == [
                f"changed {changed}, nothing new {1 - changed}, ignored 0",
                "bounce: guide:1, docs-team: the mail came back: Permanent/General, 5.1.1",
            ]
            assert "@" not in said.out
            assert said.err == ""

    def test_a_mail_that_nobody_knows_is_named_and_is_no_error(self, terminal: Terminal, tmp_path: Path) -> None:
        (tmp_path / "other.json").write_text(event("Bounce", tag="gone_3a9"))
        said = terminal.fine("mail-events", str(tmp_path / "other.json"))
        assert said.out.splitlines() == ["changed 0, nothing new 0, ignored 0", "no notice for mail gone:9"]
        assert said.err == ""

    def test_a_file_is_read_with_a_byte_order_mark_and_refused_in_a_sentence(
        self, sent: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        events, pipe = tmp_path / "events", tmp_path / "events" / "pipe.json"
        events.mkdir()
        (events / "bom.json").write_text(event("Delivery"), encoding="utf-8-sig")
        (events / "latin.json").write_bytes(b'{}\n{"half": "\xff')
        os.mkfifo(pipe)
        (events / "zeros.json").symlink_to("/dev/zero")
        said = sent.run("mail-events", str(events), "--json")
        assert said.document["changed"] == 1
        assert [item["problem"] for item in said.document["unreadable"]] == [
            f"{events}/latin.json:2: this is not UTF-8. Save the file as UTF-8.",
            f"{pipe}: it is not a regular file. Name a file.",
            f"{events}/zeros.json: it is not a regular file. Name a file.",
        ]
        monkeypatch.setattr("linkwatch_pipeline.entrypoints.cli.mail_events._MAX_BYTES", 1_000_000)
        assert "larger than 1 MB. Split it." in sent.run("mail-events", "/dev/zero").err

    def test_a_path_that_is_not_there_is_wrong_usage(self, terminal: Terminal, tmp_path: Path) -> None:
        said = terminal.run("mail-events", str(tmp_path / "absent"))
        assert said.code == 2
        assert "absent" in said.err
