"""The door itself: help, versions, exit codes, closed pipes, full disks and Ctrl-C."""

from __future__ import annotations

import logging
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import SITE, Terminal

PROGRAM = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"
COMMANDS = (
    *("init", "demo", "owner", "register", "update", "retire", "links", "run", "check", "record", "inspect"),
    *("outbox", "deliver", "resume", "report", "health", "dev", "fixture"),
)
HEAVY = ("dagster", "pandas", "duckdb", "numpy", "boto3", "httpx", "httpcore", "sqlite3")


def linkwatch(*words: str, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=buffered()
    )


def buffered() -> dict[str, str]:
    """An environment in which output is buffered, so that some of it is left to write when the process ends."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def test_help_lists_the_commands(terminal: Terminal) -> None:
    said = terminal.run_line(["--help"])
    assert said.code == 0
    assert all(f"\n  {command} " in said.out for command in COMMANDS)
    for command in COMMANDS:
        assert terminal.run_line([command, "--help"]).code == 0
    assert not terminal.home.exists()


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from linkwatch_pipeline.entrypoints.cli import main; code = main(['--help']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip() == "[]"


def test_the_version_is_told(terminal: Terminal) -> None:
    said = terminal.run_line(["--version"])
    assert (said.code, said.out.split()[0]) == (0, "linkwatch")


def test_without_a_command_the_help_goes_to_stderr(terminal: Terminal) -> None:
    said = terminal.run_line([])
    assert (said.code, said.out) == (2, "")
    assert "Usage: linkwatch" in said.err


def test_an_empty_home_is_refused(terminal: Terminal) -> None:
    said = terminal.run_line(["--home", "", "links"])
    assert (said.code, said.out) == (2, "")


def test_a_reader_that_leaves_early_hears_no_complaint(terminal: Terminal) -> None:
    for number in range(3):
        terminal.fine("record", f"drill-{number}", SITE, "--sequence", "0", "--status", "404")
    # The reader closes before anything is written: nobody is there any more.
    shell = f"{sys.executable} -c '{PROGRAM}' --home {terminal.home} inspect --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=60, env=buffered()
    )
    assert (done.stdout.strip(), done.stderr) == ("141", "")


def test_an_output_that_cannot_be_written_is_told(terminal: Terminal) -> None:
    terminal.fine("init")
    with open("/dev/full", "wb") as full:
        done = linkwatch("--home", str(terminal.home), "links", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "linkwatch: No space left on device.\n"


# A second or two. Not endless: now and then DuckDB ends an interrupted query only when that is done.
QUERY = "SELECT sum(a.range * b.range % 7) FROM range(10000) a, range(10000) b"


# Python turns what is raised in the middle of this into a RuntimeError, up to 3.11.
DEFINITION = "type('Odd', (), {'name': type('Name', (), {'__set_name__': lambda *_: threading.Event().wait(50)})()})"


@pytest.mark.parametrize("work", ["", f"duckdb.execute('{QUERY}'); ", f"{DEFINITION}; "])
def test_ctrl_c_ends_with_130_and_a_word(work: str) -> None:
    program = (
        "import os, signal, sys, threading, duckdb; from linkwatch_pipeline.entrypoints.cli import links, main\n"
        "def interrupted(**_):\n"
        "    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        f"    {work}threading.Event().wait(50)\n"
        "links.links.callback = interrupted\n"
        "sys.exit(main(['links']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 130
    assert done.stderr.startswith("linkwatch: interrupted")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("damage", [b"not a database at all " * 400, b"SQLite format 3\x00" + b"\xff" * 8192])
def test_a_damaged_database_is_refused(terminal: Terminal, damage: bytes) -> None:
    terminal.fine("init")
    (terminal.home / "linkwatch.sqlite3").write_bytes(damage)
    for words in (("links", "--json"), ("record", "guide", SITE, "--sequence", "0", "--status", "200")):
        assert "linkwatch.sqlite3" in terminal.refused(*words)
    assert (terminal.home / "linkwatch.sqlite3").read_bytes() == damage


def test_a_database_of_a_newer_linkwatch_is_refused(terminal: Terminal) -> None:
    terminal.fine("init")
    database = sqlite3.connect(terminal.home / "linkwatch.sqlite3")
    database.execute("PRAGMA user_version = 1000")
    database.close()
    assert "newer linkwatch" in terminal.refused("links")


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes meanwhile: what a full disk is to a program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_a_command_writes_all_or_nothing(terminal: Terminal) -> None:
    terminal.fine("owner", "docs", "docs@example.com")
    refused = 0
    for number, size in enumerate(range(0, 120_000, 8_000)):
        words = ("register", f"guide-{number}", f"https://docs.python.org/{number}", "--owner", "docs")
        before = terminal.fine("links", "--json").document
        with files_at_most(size):
            said = terminal.run(*words)
        after = terminal.fine("links", "--json").document
        if said.code == 0:
            assert len(after) == len(before) + 1
        else:
            assert (said.code, said.out, after) == (2, "", before)
            assert said.err.startswith("linkwatch: ")
            refused += 1
    assert refused >= 3


def test_a_warning_on_the_terminal_says_what_is_the_matter(terminal: Terminal) -> None:
    terminal.run("--version")
    assert logging.lastResort is not None
    record = logging.LogRecord("any", logging.WARNING, __file__, 1, "queue did not take messages", (), None)
    assert logging.lastResort.format(record) == "queue did not take messages"
    record.error = "not today"
    assert logging.lastResort.format(record) == "queue did not take messages: not today"


def test_on_a_full_disk_no_home_is_half_made(terminal: Terminal, tmp_path: Path) -> None:
    for size in (0, 100, 5_000, 20_000):
        with files_at_most(size):
            assert terminal.run("init").code == 2
        assert list(tmp_path.iterdir()) == []
    terminal.fine("init")
