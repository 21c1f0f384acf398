"""A store in which something cannot be read: every command says what, where and what to do, in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

COMMANDS = (("links",), ("inspect",), ("inspect", "bad"), ("health",), ("health", "--json"), ("export", "{}"))


def each_command(terminal: Terminal, folder: Path) -> list[str]:
    return [terminal.refused(*(word.format(folder / "history") for word in command)) for command in COMMANDS]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("state", "no such state", "state cannot be read"),
        ("active_since", "yesterday", "active_since cannot be read"),
        ("version", "many", "version is not a whole number"),
        ("places", "[[1]]", "places cannot be read"),
    ],
)
def test_a_damaged_row_is_named(terminal: Terminal, tmp_path: Path, column: str, value: str, said: str) -> None:
    terminal.fine("register", "bad", "https://docs.example.com/guide", "--owner", "docs", "--notify", "a@example.com")
    with closing(sqlite3.connect(terminal.home / "linkwatch.sqlite3")) as database, database:
        database.execute(f"UPDATE links SET {column} = ?", (value,))
    for sentence in each_command(terminal, tmp_path):
        assert f"linkwatch.sqlite3: the row bad of links is damaged ({said}). Put a backup" in sentence
    assert not (tmp_path / "history").exists()


def only_its_id(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("pk", "sk", "id", "w")}


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
    ministack: Cloud,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[dict[str, Any]], dict[str, Any]],
    said: str,
) -> None:
    table = make_table(ministack)
    for variable, setting in ministack.env.items():
        monkeypatch.setenv(variable, setting)
    for variable, setting in (("PROFILE", "aws"), ("TABLE", table), ("ALLOW_ENDPOINT", "true")):
        monkeypatch.setenv(f"LINKWATCH_{variable}", setting)
    terminal.fine("register", "bad", "https://docs.example.com/guide", "--owner", "docs", "--notify", "a@example.com")
    client = ministack.client("dynamodb")
    key = {"pk": {"S": "LINK#bad"}, "sk": {"S": "STATE"}}
    client.put_item(TableName=table, Item=damage(client.get_item(TableName=table, Key=key)["Item"]))
    for sentence in each_command(terminal, tmp_path):
        assert f"the item LINK#bad / STATE of the DynamoDB table '{table}' is damaged ({said})" in sentence
        assert "point-in-time restore" in sentence
    assert not (tmp_path / "history").exists()
