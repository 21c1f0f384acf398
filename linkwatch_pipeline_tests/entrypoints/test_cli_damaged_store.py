"""A store in which something cannot be read: every command names it, and goes on where that does no harm."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline_tests.builders import RUN_ID, a_run
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table
from linkwatch_pipeline_tests.contracts.spoiling import spoil_row
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

REFUSED = (("inspect", "bad"), ("export", "{}"))
SHOW_THE_REST = ("links", "inspect")


def register_two(terminal: Terminal) -> None:
    for name in ("bad", "good"):
        url = f"https://docs.example.com/{name}"
        terminal.fine("register", name, url, "--owner", "docs", "--notify", "a@example.com")


def names_it(terminal: Terminal, folder: Path, caplog: pytest.LogCaptureFixture, sentence: str) -> None:
    """Each command says the sentence: in refusing, as a finding, or as a warning beside the rest."""
    for command in REFUSED:
        assert sentence in terminal.refused(*(word.format(folder / "history") for word in command))
    assert not (folder / "history").exists()
    for shows in SHOW_THE_REST:
        caplog.clear()
        said = terminal.run(shows)
        assert (said.code, "good" in said.out, sentence in caplog.text) == (1, True, True), shows
    found = [f for f in terminal.run("health", "--json").document["findings"] if f["code"] == "record_damaged"]
    assert [sentence in finding["detail"] for finding in found] == [True]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("state", "no such state", "state cannot be read"),
        ("active_since", "yesterday", "active_since cannot be read"),
        ("version", "many", "version is not a whole number"),
        ("places", "[[1]]", "places cannot be read"),
        ("places", "[" * 20_000, "places cannot be read"),
    ],
)
def test_a_damaged_row_is_named(
    terminal: Terminal, tmp_path: Path, caplog: pytest.LogCaptureFixture, column: str, value: str, said: str
) -> None:
    register_two(terminal)
    spoil_row(terminal.home / "linkwatch.sqlite3", "links", "bad", **{column: value})
    sentence = f"linkwatch.sqlite3: the row bad of links is damaged ({said}). Put a backup"
    names_it(terminal, tmp_path, caplog, sentence)


def test_a_damaged_notice_keeps_no_other_back(terminal: Terminal, caplog: pytest.LogCaptureFixture) -> None:
    register_two(terminal)
    for name in ("bad", "good"):
        terminal.fine("record", name, f"https://docs.example.com/{name}", "--sequence", "0", "--status", "404")
    spoil_row(terminal.home / "linkwatch.sqlite3", "notices", "bad:1", status="no such status")
    said = terminal.run("deliver")
    assert said.code == 1
    assert said.out.startswith("sent 1, to ")
    assert "damaged: 1; see 'linkwatch outbox'\n" in said.out
    caplog.clear()
    outbox = terminal.run("outbox")
    assert (outbox.code, "good:1" in outbox.out, "bad:1" in outbox.out) == (1, True, False)
    assert "the row bad:1 of notices is damaged (status cannot be read)" in caplog.text
    assert "record_damaged" in terminal.run("health").out
    spoil_row(terminal.home / "linkwatch.sqlite3", "notices", "bad:1", status="pending")
    assert terminal.fine("deliver").out.startswith("sent 1, to ")


def test_a_damaged_run_or_mute_stops_no_mail_of_others(terminal: Terminal, caplog: pytest.LogCaptureFixture) -> None:
    register_two(terminal)
    for name in ("bad", "good"):
        terminal.fine("record", name, f"https://docs.example.com/{name}", "--sequence", "0", "--status", "404")
    tomorrow = (SystemClock().now() + timedelta(days=1)).date().isoformat()
    terminal.fine("mute", "bad", "--until", tomorrow, "--reason", "known")
    spoil_row(terminal.home / "linkwatch.sqlite3", "mutes", "link:bad", until="banana")
    said = terminal.run("deliver")
    assert (said.code, said.out.startswith("sent 1, to ")) == (1, True)
    for command in (["mutes"], ["links"], ["inspect"]):
        caplog.clear()
        assert terminal.run(*command).code == 1
        assert "the row link:bad of mutes is damaged (until cannot be read)" in caplog.text
    put_run(terminal)
    for command in (["dead-letters"], ["health", "--history"]):
        caplog.clear()
        assert terminal.run(*command).code == 1
        assert "of runs is damaged (expected is not a whole number)" in caplog.text
    subjects = [f["subject"] for f in terminal.run("health", "--json").document["findings"]]
    assert {"mutes: link:bad", f"runs: {RUN_ID}"} <= set(subjects)


def put_run(terminal: Terminal) -> None:
    """A run that is damaged."""
    with closing(SqliteStore.open(terminal.home / "linkwatch.sqlite3")) as store:
        store.create_run(a_run())
    spoil_row(terminal.home / "linkwatch.sqlite3", "runs", RUN_ID, expected="b")


def only_its_id(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("pk", "sk", "id", "w")}


def the_rest_is_shown(terminal: Terminal, folder: Path, caplog: pytest.LogCaptureFixture, sentence: str) -> None:
    """Of a damaged observation of the link `bad`."""
    caplog.clear()
    said = terminal.run("inspect")
    assert (said.code, "good:1" in said.out, sentence in caplog.text) == (1, True, True)
    assert sentence in terminal.fine("report").out
    assert sentence in terminal.refused("export", str(folder / "history"))


def observe_two(terminal: Terminal) -> None:
    register_two(terminal)
    for name in ("bad", "good"):
        terminal.fine("record", name, f"https://docs.example.com/{name}", "--sequence", "0", "--status", "404")


def test_a_damaged_observation_in_a_row(terminal: Terminal, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    observe_two(terminal)
    spoil_row(terminal.home / "linkwatch.sqlite3", "observations", "bad:0", page_hints="no such thing")
    sentence = "linkwatch.sqlite3: the row bad, 0 of observations is damaged (page_hints cannot be read). Put a backup"
    the_rest_is_shown(terminal, tmp_path, caplog, sentence)


def test_a_damaged_observation_in_an_item(
    cloud_table: tuple[Any, str], terminal: Terminal, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observe_two(terminal)
    client, table = cloud_table
    key = {"pk": {"S": "LINK#bad"}, "sk": {"S": "OBS#0000000000"}}
    held = client.get_item(TableName=table, Key=key)["Item"]
    client.put_item(TableName=table, Item=held | {"page_hints": {"SS": ["a"]}})
    sentence = f"the item LINK#bad / OBS#0000000000 of the DynamoDB table '{table}' is damaged (page_hints cannot be "
    the_rest_is_shown(terminal, tmp_path, caplog, sentence)


@pytest.fixture
def cloud_table(ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """A table that commands use, and a client for it."""
    table = make_table(ministack)
    for variable, setting in ministack.env.items():
        monkeypatch.setenv(variable, setting)
    for variable, setting in (("PROFILE", "aws"), ("TABLE", table), ("ALLOW_ENDPOINT", "true")):
        monkeypatch.setenv(f"LINKWATCH_{variable}", setting)
    return ministack.client("dynamodb"), table


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (only_its_id, "url is missing"),
        (lambda item: item | {"state": {"S": "no such state"}}, "state cannot be read"),
        (lambda item: item | {"version": {"N": "1.5"}}, "version is not a whole number"),
        (lambda item: item | {"marker": {"M": {}}}, "marker is not a text"),
        (lambda item: item | {"parts": {"S": "gone"}, "parts_count": {"N": "1"}}, "it names parts that are not there"),
        (lambda item: item | {"parts": {"S": "gone"}}, "parts or parts_count cannot be read"),
    ],
)
def test_a_damaged_item_is_named(
    terminal: Terminal,
    tmp_path: Path,
    cloud_table: tuple[Any, str],
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[dict[str, Any]], dict[str, Any]],
    said: str,
) -> None:
    register_two(terminal)
    client, table = cloud_table
    key = {"pk": {"S": "LINK#bad"}, "sk": {"S": "STATE"}}
    client.put_item(TableName=table, Item=damage(client.get_item(TableName=table, Key=key)["Item"]))
    names_it(
        terminal, tmp_path, caplog, f"the item LINK#bad / STATE of the DynamoDB table '{table}' is damaged ({said})"
    )
