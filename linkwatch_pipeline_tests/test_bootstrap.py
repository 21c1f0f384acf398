"""Homes and the parts that are wired from them: made whole or not at all, and fixture homes kept apart."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, PublicPolicy
from linkwatch_pipeline.adapters.home import FixtureMark, find_home, parse_fixture_pairs
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.bootstrap import App, build_app, make_home
from linkwatch_pipeline.domain.errors import AlreadyRunning, ConfigurationError, InvalidInput, StoreUnusable
from linkwatch_pipeline.domain.hosts import Admitted
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import RefusedUrl, parse_url
from linkwatch_pipeline_tests.builders import MONDAY, a_link
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

PAIRS = FixtureMark(pairs=(("127.0.0.1", 8765),))
PARTS = {"linkwatch.toml", "linkwatch.sqlite3", "mail", "warehouse", "dagster"}
HEAVY = ("dagster", "pandas", "duckdb", "numpy", "boto3", "httpx")


def contents(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with build_app(tmp_path / "home", env={}, clock=VirtualClock(MONDAY), chance=random.Random(1)) as built:
        yield built


def test_a_home_is_made_whole_on_first_use(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "where" / "home"
    build_app(folder, env={}).close()
    assert contents(folder) == PARTS
    assert "# confirm = 1" in (folder / "linkwatch.toml").read_text()


def test_a_home_keeps_what_is_there_and_gets_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "linkwatch.toml").write_text("confirm = 2\n")
    (tmp_path / "handbook.md").write_text("mine")
    with build_app(tmp_path, env={}) as app:
        assert app.default_confirm == 2
    assert contents(tmp_path) == {*PARTS, "handbook.md"}


def test_a_new_home_is_refused_where_one_is(tmp_path: Path) -> None:
    make_home(tmp_path, env={})
    with pytest.raises(ConfigurationError, match="a linkwatch home already"):
        make_home(tmp_path, env={}, fixture=PAIRS)
    assert find_home(tmp_path).fixture is None


def test_a_file_is_no_home(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (file, file / "below"):
        with pytest.raises(ConfigurationError, match=r"not a folder|cannot be"):
            build_app(folder, env={})
    assert file.read_text() == "mine"


def test_with_wrong_settings_no_home_is_made(tmp_path: Path) -> None:
    for make in (build_app, make_home):
        with pytest.raises(ConfigurationError, match="LINKWATCH_CONFRIM"):
            make(tmp_path / "home", env={"LINKWATCH_CONFRIM": "1"})
    assert contents(tmp_path) == set()


def test_nothing_is_left_of_a_home_whose_database_cannot_be_made(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "home"
    folder.mkdir(parents=True)
    (folder / "linkwatch.sqlite3-wal").mkdir()  # SQLite cannot write its log there
    with pytest.raises(Exception, match=r"linkwatch\.sqlite3"):
        build_app(folder, env={})
    assert contents(folder) <= {"linkwatch.sqlite3-wal"}


def test_a_damaged_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    make_home(tmp_path, env={})
    (tmp_path / "linkwatch.sqlite3").write_bytes(b"not a database, but certainly long enough" * 100)
    with build_app(tmp_path, env={}) as app, pytest.raises(StoreUnusable, match="damaged"):
        app.store.get_link("guide")
    assert (tmp_path / "linkwatch.sqlite3").read_bytes().startswith(b"not a database")


def test_a_database_of_a_newer_linkwatch_is_refused(tmp_path: Path) -> None:
    make_home(tmp_path, env={})
    with sqlite3.connect(tmp_path / "linkwatch.sqlite3") as database:
        database.execute("PRAGMA user_version = 1000")
    database.close()
    with build_app(tmp_path, env={}) as app, pytest.raises(StoreUnusable, match="newer linkwatch"):
        app.store.get_link("guide")


def test_an_ordinary_home_always_gets_the_public_policy(app: App) -> None:
    assert isinstance(app.policy, PublicPolicy)
    with pytest.raises(RefusedUrl):
        app.policy.judge_url(parse_url("http://127.0.0.1:8765/"))


def test_a_fixture_home_admits_its_pairs_only_and_stays_one(tmp_path: Path) -> None:
    make_home(tmp_path, env={}, fixture=PAIRS)
    with build_app(tmp_path, env={}) as app:
        assert isinstance(app.policy, FixturePolicy)
        app.policy.judge_address("127.0.0.1", 8765)
        with pytest.raises(RefusedUrl):
            app.policy.judge_address("127.0.0.1", 8766)
        assert app.home.fixture == PAIRS
        assert app.user_agent.startswith("linkwatch/")


def test_no_setting_makes_an_ordinary_home_a_fixture_home(tmp_path: Path) -> None:
    (tmp_path / "linkwatch.toml").write_text('fixture = "127.0.0.1:8765"\n')
    with pytest.raises(ConfigurationError, match="'fixture'"):
        build_app(tmp_path, env={})
    with pytest.raises(ConfigurationError, match="LINKWATCH_FIXTURE"):
        build_app(tmp_path / "home", env={"LINKWATCH_FIXTURE": "127.0.0.1:8765"})


@pytest.mark.parametrize(
    "mark",
    [
        "",
        "{}",
        "[]",
        '{"pairs": [], "story": false}',
        '{"pairs": [["8.8.8.8", 8765]], "story": false}',
        "\xff",
        "[" * 20_000,
    ],
)
def test_a_damaged_mark_never_makes_a_fixture_home_an_ordinary_one(tmp_path: Path, mark: str) -> None:
    make_home(tmp_path, env={}, fixture=PAIRS)
    (tmp_path / "fixture.json").write_text(mark, encoding="latin-1")
    with pytest.raises(ConfigurationError, match="damaged"):
        build_app(tmp_path, env={})


def test_a_fixture_mark_says_what_it_admits_and_whether_it_tells_a_story(tmp_path: Path) -> None:
    make_home(tmp_path, env={}, fixture=PAIRS)
    assert json.loads((tmp_path / "fixture.json").read_text()) == {"pairs": [["127.0.0.1", 8765]], "story": False}


def test_fixture_pairs_are_read_in_order_and_once() -> None:
    mark = parse_fixture_pairs("127.0.0.1:8765, 127.0.0.2:9000,127.0.0.1:8765,[::1]:8765")
    assert mark.pairs == (("127.0.0.1", 8765), ("127.0.0.2", 9000), ("::1", 8765))
    assert str(mark) == "127.0.0.1:8765, 127.0.0.2:9000, [::1]:8765"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:70000",
        "10.0.0.1:8765",
        "localhost:8765",
        "127.0.0.1:8765,",
        "0:8765",
    ],
)
def test_a_fixture_is_a_loopback_address_with_an_unprivileged_port(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"127\.0\.0\.1:8765"):
        parse_fixture_pairs(text)


def test_a_public_host_is_not_visited_without_a_contact(tmp_path: Path) -> None:
    with build_app(tmp_path, env={}) as app:
        app.store.save_link(a_link(url="http://127.0.0.1:8765/"), replaces=None)
        app.require_contact()  # what is refused anyway needs nobody to complain to
        app.store.save_link(a_link("other", url="https://docs.python.org/3/"), replaces=None)
        with pytest.raises(ConfigurationError, match="no contact is set"):
            app.make_fetcher()
    with build_app(tmp_path, env={"LINKWATCH_CONTACT": "links@example.com"}) as app:
        app.require_contact()
        assert app.user_agent.endswith("(+links@example.com)")


def test_allowed_hosts_narrow_the_policy_to_themselves_and_what_is_below(tmp_path: Path) -> None:
    (tmp_path / "linkwatch.toml").write_text('allowed_hosts = ["python.org"]\n')
    with build_app(tmp_path, env={}) as app:
        for url in ("https://python.org/", "https://docs.python.org/3/"):
            app.policy.judge_url(parse_url(url))
        for url in ("https://notpython.org/", "https://python.org.net/"):
            with pytest.raises(RefusedUrl) as refused:
                app.policy.judge_url(parse_url(url))
            assert refused.value.reason is Reason.BLOCKED_URL
        with pytest.raises(RefusedUrl) as refused:
            app.policy.judge_url(parse_url("http://python.org:8080/"))
        assert refused.value.reason is Reason.BLOCKED_PORT
        with pytest.raises(RefusedUrl):
            app.policy.judge_address("127.0.0.1", 80)


def test_one_process_at_a_time_works_on_runs(app: App) -> None:
    with app.sole_runner() as worker:
        assert worker.startswith("run-")
        with pytest.raises(AlreadyRunning), app.sole_runner():
            pass
    with app.sole_runner() as another:
        assert another != worker


def test_a_dead_predecessors_hosts_are_free_at_once(app: App) -> None:
    app.store.save_link(a_link(), replaces=None)
    dead, host = "run-1-dead", "docs.example.com"
    taken = app.store.acquire_host(host, token=f"{dead}:1", job_id="0:guide", now=app.clock.now(), skew=app.skew)
    assert isinstance(taken, Admitted)
    app.home.run_lock.write_text(dead)
    with app.sole_runner():
        held = app.store.get_host(host)
        assert held is not None
        assert held.owner_token is None


def test_a_story_clock_begins_at_its_week_and_runs_at_real_speed() -> None:
    base = VirtualClock(MONDAY)
    clock = StoryClock(base, MONDAY.replace(day=7))
    assert clock.now() == MONDAY.replace(day=7)
    base.advance(MONDAY.replace(minute=5) - MONDAY)
    assert clock.now() == MONDAY.replace(day=7, minute=5)


def test_importing_bootstrap_and_the_command_line_is_light() -> None:
    program = (
        "import sys, linkwatch_pipeline.bootstrap, linkwatch_pipeline.entrypoints.cli;"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_home_that_cannot_be_written_is_refused_and_nothing_half_made(tmp_path: Path) -> None:
    # Not below pytest's folders: those are private, and another user has to get here.
    with tempfile.TemporaryDirectory() as name:
        locked = Path(name)
        locked.chmod(0o555)
        command_lines = (["--home", f"{locked}/deep/home", "links"], ["--home", f"{locked}", "init"])
        rehearsal = (["--home", f"{tmp_path}/home", "links"], ["--home", f"{tmp_path}/new", "init"])
        program = (
            "import os; from linkwatch_pipeline.entrypoints.cli import main\n"
            # Once with all rights, so that every module is loaded: the other user may not even read them.
            f"for line in {rehearsal!r}: main(line)\n"
            "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"  # root may write everywhere
            f"print([main(line) for line in {command_lines!r}])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.splitlines()[-1] == "[2, 2]", done.stderr
        assert done.stderr.count("cannot be written: Permission denied") == 2, done.stderr
        assert contents(locked) == set()
