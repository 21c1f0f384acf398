"""`check` and `fixture`: one observation now, of a real page on loopback (SPEC 14, Hand checks and Fixture)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.fixture_site import FixtureSite
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.patience import as_released
from linkwatch_pipeline_tests.ports import reserved_port


@pytest.fixture
def site() -> Iterator[FixtureSite]:
    with FixtureSite(port=0).running() as running:
        yield running


@pytest.fixture
def watched(terminal: Terminal, site: FixtureSite, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A fixture home for the site, its page registered, and no pause between visits."""
    monkeypatch.setenv("LINKWATCH_COOLDOWN_SECONDS", "0")
    terminal.fine("init", "--fixture", f"127.0.0.1:{site.port}")
    owner = ("--owner", "docs", "--notify", "docs@example.com")
    terminal.fine("register", "guide", f"{site.url}guide", *owner, "--expect", "guide-v1")
    return terminal


def test_the_checkpoints_of_the_reference_program_are_walked(watched: Terminal, site: FixtureSite) -> None:
    for sequence, status, code in ((1, 200, 0), (2, 404, 1), (3, 404, 1), (4, 200, 0)):
        site.set(status=status)
        assert watched.run("check", "guide", "--sequence", str(sequence)).code == code
    site.set(status=200, body="Domain for sale")
    assert watched.run("check", "guide", "--json").document["reason"] == "marker_missing"
    site.set(status=200, delay_seconds=3)
    with as_released():
        assert watched.run("check", "guide", "--json").document["reason"] == "timeout"
    site.set(status=429)  # last, since the host asks for a pause
    assert watched.run("check", "guide", "--json").document["outcome"] == "throttled"
    records = watched.records()
    assert [t["id"] for t in records["transitions"]] == ["guide:2", "guide:3"]
    assert [o["sequence"] for o in records["observations"]] == [1, 2, 3, 4, 5, 6, 7]
    assert records["links"][0]["state"] == "reachable"
    assert watched.run("check", "guide").code == 1  # the pause holds


def test_a_committed_check_makes_no_request(watched: Terminal, site: FixtureSite) -> None:
    first = watched.fine("check", "guide", "--sequence", "1", "--json").document
    site.set(status=404)
    again = watched.fine("check", "guide", "--sequence", "1", "--json").document
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert (again["job_id"], again["outcome"]) == ("1:guide", "reachable")
    assert again["observed_at"] == first["observed_at"]


def test_a_host_that_asked_for_a_pause_is_left_alone(watched: Terminal, site: FixtureSite) -> None:
    site.set(status=429, retry_after=600)
    assert watched.run("check", "guide").code == 1
    site.set(status=200)
    said = watched.run("check", "guide", "--json")
    assert (said.code, said.out) == (1, "")
    assert "may not be visited before" in said.err
    assert len(watched.records()["observations"]) == 1


def test_an_unknown_link_is_refused(watched: Terminal) -> None:
    assert watched.run("check", "absent").code == 2
    assert watched.run("check", "guide", "--sequence", "yes").code == 2


def test_an_ordinary_home_refuses_the_fixture(terminal: Terminal, site: FixtureSite) -> None:
    terminal.fine("register", "guide", site.url, "--owner", "docs", "--notify", "docs@example.com")
    said = terminal.run("check", "guide", "--json")
    assert said.code == 1
    assert (said.document["outcome"], said.document["status"]) == ("uncertain", None)
    assert said.document["reason"] in ("blocked_address", "blocked_port")


def test_an_ordinary_home_visits_nobody_without_saying_who_it_is(terminal: Terminal) -> None:
    terminal.fine("register", "guide", "https://docs.python.org/3/", "--owner", "docs", "--notify", "docs@example.com")
    assert "no contact is set" in terminal.refused("check", "guide")
    assert terminal.records()["observations"] == []


@contextmanager
def served(*words: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    program = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "fixture", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def test_the_fixture_command_serves_what_its_file_says_until_it_is_interrupted(
    terminal: Terminal, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKWATCH_COOLDOWN_SECONDS", "0")
    state = tmp_path / "state.json"
    terminal.fine("init", "--fixture", f"127.0.0.1:{port}")
    url = f"http://127.0.0.1:{port}/"
    terminal.fine("register", "guide", url, "--owner", "docs", "--notify", "docs@example.com")
    with served("--port", str(port), "--state", str(state), cwd=tmp_path) as process:
        assert process.stdout is not None
        assert url in process.stdout.readline()
        assert terminal.run("check", "guide", "--json").document["outcome"] == "reachable"
        state.write_text(json.dumps({"status": 404}))
        assert terminal.run("check", "guide", "--json").document["outcome"] == "broken"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert not (tmp_path / ".linkwatch").exists()
