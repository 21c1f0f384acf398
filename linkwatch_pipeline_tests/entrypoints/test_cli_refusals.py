"""What is refused leaves nothing begun, and what was said before is said again."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import SITE, Terminal

PUBLIC = "http://docs.example.com/guide"


def test_a_run_without_a_contact_begins_nothing(terminal: Terminal) -> None:
    terminal.fine("register", "guide", PUBLIC, "--owner", "docs", "--notify", "docs@example.com")
    assert "no contact is set" in terminal.refused("run")
    with sqlite3.connect(terminal.home / "linkwatch.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    assert terminal.fine("health", "--json").document["findings"] == []


@pytest.mark.parametrize(
    ("week", "problem"),
    [
        ("1969-12-29", "the week 1969-12-29 began more than 390 days ago"),
        ("0001-01-01", "not in a year from 1900 to 2999"),
        ("9999-12-27", "not in a year from 1900 to 2999"),
        ("2999-12-30", "has not begun"),
    ],
)
def test_a_week_that_nobody_could_run_leaves_no_run(terminal: Terminal, week: str, problem: str) -> None:
    assert problem in terminal.refused("run", "--week", week)
    with sqlite3.connect(terminal.home / "linkwatch.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (0,)


def test_a_committed_check_needs_no_contact(terminal: Terminal) -> None:
    terminal.fine("record", "guide", PUBLIC, "--sequence", "0", "--status", "404")
    said = terminal.run("check", "guide", "--sequence", "0", "--json")
    assert said.code == 1
    assert said.document["duplicate"] is True


def test_a_repetition_shows_what_was_recorded_first(fixture_home: Terminal) -> None:
    words = ("record", "guide", SITE, "--sequence", "0", "--status", "200", "--json")
    first, again = fixture_home.fine(*words).document, fixture_home.fine(*words).document
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert again["observed_at"] == first["observed_at"]


@pytest.mark.parametrize("name", ["what?", "100%25"])
def test_a_home_that_dagster_could_not_find_is_refused(terminal: Terminal, name: str) -> None:
    home = terminal.home / name
    said = terminal.run_line(["--home", str(home), "init"])
    assert said.code == 2
    assert "cannot be used" in said.err
    assert not home.exists()


def test_dev_refuses_the_database_of_a_newer_linkwatch(fixture_home: Terminal) -> None:
    fixture_home.fine("links")
    with sqlite3.connect(fixture_home.home / "linkwatch.sqlite3") as database:
        database.execute("PRAGMA user_version = 999")
    assert "newer linkwatch" in fixture_home.refused("dev")


def test_a_closed_stdout_is_no_traceback(fixture_home: Terminal) -> None:
    program = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"
    command = f'exec "{sys.executable}" -c "{program}" --home "$1" links >&-'
    done = subprocess.run(["sh", "-c", command, "sh", str(fixture_home.home)], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "fixture home" in done.stderr
