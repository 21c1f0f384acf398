"""The commands on a DynamoDB table: the same answers, with nothing of the truth in the home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.history_file import check_history, read_history
from linkwatch_pipeline.entrypoints.cli import opening
from linkwatch_pipeline.ports import Store, StoredRecord
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table, open_store
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal


@pytest.fixture
def table(ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> str:
    name = make_table(ministack)
    for variable, value in ministack.env.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("LINKWATCH_PROFILE", "aws")
    monkeypatch.setenv("LINKWATCH_TABLE", name)
    monkeypatch.setenv("LINKWATCH_ALLOW_ENDPOINT", "true")
    return name


URL = "https://docs.example.com/guide"


def play(terminal: Terminal) -> None:
    terminal.fine("register", "guide", URL, "--owner", "docs", "--notify", "docs@example.com")
    for sequence, status in enumerate(("200", "404", "404", "200")):
        terminal.fine("record", "guide", URL, "--sequence", str(sequence), "--status", status)


def test_the_classic_proof_holds_in_a_table_and_its_mails_are_sent(table: str, terminal: Terminal) -> None:
    play(terminal)
    records = terminal.records()
    assert [look["status"] for look in records["observations"]] == [200, 404, 404, 200]
    assert [change["id"] for change in records["transitions"]] == ["guide:2", "guide:3"]
    assert [(n["transition_id"], n["status"]) for n in records["outbox"]] == [
        ("guide:2", "pending"),
        ("guide:3", "pending"),
    ]
    assert terminal.fine("links", "--json").document[0]["version"] == 3
    terminal.fine("deliver")
    assert len(list((terminal.home / "mail").iterdir())) == 2
    terminal.fine("owner", "docs", "new@example.com")
    terminal.fine("update", "guide", "--expect", "Guide")
    terminal.fine("retire", "guide")
    assert not (terminal.home / "linkwatch.sqlite3").exists()


@pytest.mark.parametrize(
    "command", [("links",), ("health",), ("inspect",), ("owner", "docs", "a@example.com"), ("export", "there")]
)
def test_a_table_that_a_newer_linkwatch_wrote_is_refused(
    table: str, terminal: Terminal, ministack: Cloud, command: tuple[str, ...]
) -> None:
    item = {"pk": {"S": "SCHEMA"}, "sk": {"S": "SCHEMA"}, "version": {"N": "99"}}
    ministack.client("dynamodb").put_item(TableName=table, Item=item)
    assert f"'{table}' has schema version 99, written by a newer linkwatch" in terminal.refused(*command)


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_a_delivery_at_amazon_is_refused_while_mails_are_only_files(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    for variable, value in {
        "AWS_DEFAULT_REGION": "us-east-1",
        "LINKWATCH_PROFILE": "aws",
        "LINKWATCH_TABLE": "links",
        "LINKWATCH_ALLOW_ENDPOINT": allowed,  # a leftover of a test is no emulator
    }.items():
        monkeypatch.setenv(variable, value)
    sentence = terminal.refused("deliver")
    assert 'mail is "files", but the profile is "aws"' in sentence
    assert 'Set mail = "ses" or "smtp" (LINKWATCH_MAIL)' in sentence
    assert not list((terminal.home / "mail").glob("*"))


def test_everything_moves_from_a_home_into_a_table_and_back(
    terminal: Terminal, ministack: Cloud, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    play(terminal)
    records = terminal.records()
    assert "exported 10 records" in terminal.fine("export", str(tmp_path / "there")).out
    with pytest.MonkeyPatch.context() as in_table:
        for variable, value in ministack.env.items():
            in_table.setenv(variable, value)
        in_table.setenv("LINKWATCH_PROFILE", "aws")
        in_table.setenv("LINKWATCH_TABLE", make_table(ministack))
        in_table.setenv("LINKWATCH_ALLOW_ENDPOINT", "true")
        assert "imported 10 records" in terminal.fine("import-history", str(tmp_path / "there")).out
        assert terminal.records() == records
        terminal.fine("export", str(tmp_path / "back"))
        assert "not empty" in terminal.refused("import-history", str(tmp_path / "there"))
    assert "not empty" in terminal.refused("import-history", str(tmp_path / "back"))
    (terminal.home / "linkwatch.sqlite3").rename(tmp_path / "old.sqlite3")
    terminal.fine("import-history", str(tmp_path / "back"))
    assert terminal.records() == records


FOOTER = "https://www.example.com/" + "a" * 2_000


def in_very_many_files(folder: Path) -> Path:
    """A handbook whose footer has a URL as long as can be registered, in 6,000 places."""
    folder.mkdir()
    for number in range(60):
        (folder / f"page-{number:02}.md").write_text(f"[imprint]({FOOTER})\n" * 100)
    return folder


def test_a_url_in_6000_places_is_scanned_checked_told_and_moved(
    table: str, terminal: Terminal, tmp_path: Path, ministack: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    handbook = in_very_many_files(tmp_path / "handbook")
    said = terminal.fine("scan", str(handbook), "--owner", "docs", "--notify", "docs@example.com")
    assert said.out == "1 registered\n"
    (handbook / "page-07.md").unlink()
    assert terminal.fine("scan", str(handbook), "--owner", "docs").out == "1 updated\n"
    [link] = terminal.fine("links", "--json").document
    assert len(link["places"]) == 5_900
    terminal.fine("record", link["id"], FOOTER, "--sequence", "0", "--status", "404")
    terminal.fine("deliver")
    [mail] = (terminal.home / "mail").iterdir()
    assert "and 5880 more" in mail.read_text()
    terminal.fine("export", str(tmp_path / "there"))
    records = terminal.records()
    monkeypatch.setenv("LINKWATCH_TABLE", make_table(ministack))
    terminal.fine("import-history", str(tmp_path / "there"))
    assert terminal.records() == records


def test_what_takes_long_is_said_before(
    table: str, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"link_id": name, "url": f"{URL}/{name}", "owner": "docs", "notify": "docs@example.com"} for name in "ab"]
    (tmp_path / "links.json").write_text(json.dumps(rows))
    (tmp_path / "page.md").write_text(f"{URL}/a {URL}/c")
    assert terminal.fine("import", str(tmp_path / "links.json")).err == ""
    monkeypatch.setattr(opening, "LARGE", 2)
    for words in (("import", str(tmp_path / "links.json")), ("scan", str(tmp_path / "page.md"), "--owner", "docs")):
        assert terminal.fine(*words).err.startswith("comparing 2 links with the table, then writing all or none")


def test_the_largest_that_can_be_imported_is_kept_and_told(table: str, terminal: Terminal, tmp_path: Path) -> None:
    marker, team, name = "\U0001f517" * 500, "t" * 80, "\U0001f517" * 1_000
    rows = [
        {"link_id": "i" * 80, "url": FOOTER, "owner": team, "notify": "docs@example.com", "expect": marker}
        | {"file": f"{name}{number:04}", "line": number}
        for number in range(1, 400)
    ]
    (tmp_path / "links.json").write_text(json.dumps(rows, ensure_ascii=False))
    for _ in range(2):
        terminal.fine("import", str(tmp_path / "links.json"))
    terminal.fine("record", "i" * 80, FOOTER, "--sequence", "0", "--status", "404")
    [link] = terminal.fine("links", "--json").document
    assert (len(link["places"]), link["marker"]) == (399, marker)
    assert [notice["status"] for notice in terminal.records()["outbox"]] == ["pending"]


class PowerCut(BaseException):
    """The process is gone."""


def import_a_part(file: Path, store: Store, records: int) -> None:
    def cut() -> Iterator[StoredRecord]:
        yield from islice(read_history(file), records)
        raise PowerCut

    with pytest.raises(PowerCut):
        store.restore(cut(), source=check_history(file))


WRITING = (
    ("register", "other", "https://docs.example.com/other", "--owner", "docs"),
    ("record", "guide", URL, "--sequence", "9", "--status", "200"),
    ("owner", "docs", "new@example.com"),
    ("retire", "guide"),
    ("deliver",),
    ("run",),
    ("dead-letters", "--all"),
    ("export", "{}/half"),
)


def test_half_an_import_is_never_taken_for_the_whole(
    terminal: Terminal, ministack: Cloud, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    play(terminal)
    records = terminal.records()
    terminal.fine("export", str(tmp_path / "whole"))
    table = request.getfixturevalue("table")
    import_a_part(tmp_path / "whole", open_store(ministack, table), 5)

    for command in WRITING:
        assert "import-history' again with the same file" in terminal.refused(*(w.format(tmp_path) for w in command))
    assert not (tmp_path / "half").exists()
    said = terminal.fine("links", "--json")
    assert [link["id"] for link in said.document] == ["guide"]
    assert said.err.startswith("warning: an import of a history into this store is unfinished")
    health = terminal.run("health", "--json")
    assert health.code == 1
    assert [(f["code"], f["severity"]) for f in health.document["findings"]] == [("import_unfinished", "critical")]

    terminal.fine("import-history", str(tmp_path / "whole"))
    assert terminal.records() == records
    assert terminal.run("links").err == ""
    terminal.fine("owner", "docs", "new@example.com")
    assert "import_unfinished" not in terminal.run("health", "--json").out


def test_a_damaged_file_is_refused_before_anything_is_written(terminal: Terminal, tmp_path: Path) -> None:
    play(terminal)
    file = tmp_path / "history"
    terminal.fine("export", str(file))
    assert "there already" in terminal.refused("export", str(file))
    file.write_bytes(file.read_bytes()[:-9])
    (terminal.home / "linkwatch.sqlite3").unlink()
    assert "cut" in terminal.refused("import-history", str(file))
    assert terminal.records()["links"] == []


def test_a_table_that_is_not_there_is_named(table: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWATCH_TABLE", "nobody-made-it")
    assert "table is not there" in terminal.refused("links")


def test_an_emulator_is_not_taken_for_amazon(table: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWATCH_ALLOW_ENDPOINT")
    assert "allow_endpoint" in terminal.refused("links")


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("AWS_ENDPOINT_URL", "{} ", "no port that can be"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:99999", "no port that can be"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:http", "no port that can be"),
        ("AWS_ENDPOINT_URL", "ftp://127.0.0.1", "neither http nor https"),
        ("AWS_ENDPOINT_URL", "http://[::1", "Invalid IPv6 URL"),
        ("AWS_ENDPOINT_URL", "garbage", "Invalid endpoint"),
        ("HTTP_PROXY", "http://127.0.0.1:http", "not a valid host or port"),
        ("AWS_METADATA_SERVICE_TIMEOUT", "soon", "invalid literal"),
        ("AWS_PROFILE", "nobody", "could not be found"),
        ("AWS_CONFIG_FILE", "{home}/garbage", "Unable to parse config file"),
        ("AWS_SESSION_TOKEN", "see\ncret", "a credential holds a character"),
    ],
)
def test_what_boto3_cannot_use_is_one_sentence(
    table: str,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    ministack: Cloud,
    variable: str,
    value: str,
    told: str,
) -> None:
    terminal.home.with_name("garbage").write_text("[[[\n")
    monkeypatch.setenv(variable, value.format(ministack.endpoint_url, home=terminal.home.parent))
    sentence = terminal.refused("links")
    assert told in sentence
    assert "variables such as AWS_" in sentence
    assert "cret" not in sentence


def test_a_command_for_credentials_that_is_not_there_is_one_sentence(
    table: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[default]\ncredential_process = /nobody/made/it\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "/nobody/made/it" in terminal.refused("links")


def test_the_profile_needs_a_table(table: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWATCH_TABLE")
    assert "LINKWATCH_TABLE" in terminal.refused("links")


def test_a_fixture_home_keeps_its_truth_in_itself(table: str, fixture_home_made_before: Terminal) -> None:
    assert "a fixture home" in fixture_home_made_before.refused("links")


@pytest.fixture
def fixture_home_made_before(table: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    with pytest.MonkeyPatch.context() as local:
        local.setenv("LINKWATCH_PROFILE", "local")
        terminal.fine("init", "--fixture", "127.0.0.1:8765")
    return terminal
