"""The true `linkwatch run`, through Dagster, as people start, interrupt, kill and double it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.runs import weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline_tests.gates.busy_week import (
    LINKS_PER_HOST,
    BusyWorld,
    before,
    busy_world,
    miscounted,
    rude_visits,
)

HOSTS = 4
JOBS = HOSTS * LINKS_PER_HOST
PATIENCE = 250.0  # seconds for a command to end, on a machine that has other things to do
# As the script `linkwatch` does, but for the time that it waits for hosts which keep silent until the test says so.
LINKWATCH = (
    "import sys; from linkwatch_pipeline.entrypoints.cli import main; "
    "from linkwatch_pipeline_tests.patience import be_patient; be_patient(); sys.exit(main())"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BusyWorld]:
    with busy_world(tmp_path / "world", hosts=HOSTS, throttles=False, in_steps_of=HOSTS) as opened:
        yield opened


@pytest.fixture
def week() -> datetime:
    """The current one, as `linkwatch run` takes it."""
    return week_start(SystemClock().now())


@pytest.fixture
def home(world: BusyWorld, week: datetime, tmp_path: Path) -> Path:
    return world.make_home(tmp_path / "home", registered_at=before(week), story=False)


def test_interrupted_and_killed_a_run_goes_on_where_it_stopped(world: BusyWorld, week: datetime, home: Path) -> None:
    interrupted = _linkwatch(home, "run")
    world.wait_for_visits(interrupted, HOSTS)
    os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does: Dagster's processes are interrupted, too
    _, said = interrupted.communicate(timeout=PATIENCE)
    assert interrupted.returncode == 130
    assert said.splitlines()[-1] == "linkwatch: interrupted; the same command goes on where it stopped."
    assert "Traceback" not in said

    world.answer_up_to(2)
    killed = _linkwatch(home, "run")
    world.wait_for_visits(killed, HOSTS + 1, step=2)  # so that a host was visited twice: its first visit is recorded
    killed.kill()
    killed.communicate(timeout=PATIENCE)
    kill = SystemClock().monotonic()
    with build_app(home, env={}) as app:
        assert 0 < len(list(app.store.observations())) < JOBS

    world.answer_up_to(LINKS_PER_HOST - 1)
    resumed = _linkwatch(home, "resume", weekly_run_id(week))
    _, said = resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 0, said
    _assert_whole(home, week)
    assert rude_visits(world.log, [kill]) == []


def test_of_two_runs_at_once_one_works_and_the_other_says_why_not(world: BusyWorld, week: datetime, home: Path) -> None:
    both = [_linkwatch(home, "run"), _linkwatch(home, "run")]
    _wait_until_one_ended(both)  # before that, the one that works could come to its end, and the other find it done
    world.answer_up_to(LINKS_PER_HOST - 1)
    said = [process.communicate(timeout=PATIENCE)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1]
    refused = next(text for process, text in zip(both, said, strict=True) if process.returncode == 1)
    assert "another process is running checks" in refused.splitlines()[-1]
    assert "Traceback" not in refused
    _assert_whole(home, week)
    assert rude_visits(world.log, kills=[]) == []
    assert len([hit for hit in world.log.hits if hit.target != "/landing"]) == JOBS


def _linkwatch(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LINKWATCH, "--home", home, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_until_one_ended(processes: Sequence[subprocess.Popen[str]]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE
    while all(process.poll() is None for process in processes):
        assert clock.monotonic() < deadline, "nobody is refused"
        with suppress(subprocess.TimeoutExpired):
            processes[0].wait(timeout=0.02)


def _assert_whole(home: Path, week: datetime) -> None:
    with build_app(home, env={}) as app:
        run = app.store.get_run(weekly_run_id(week))
        assert run is not None
        assert miscounted(app.store, run) == []
        assert run.expected == JOBS
        sequences = [(seen.link_id, seen.sequence) for seen in app.store.observations()]
        assert len(sequences) == len(set(sequences)) == JOBS
