"""SPEC 5 and issue 2: killed at any moment and resumed, a week leaves what it leaves without a crash."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline_tests.gates.busy_week import (
    HOSTS,
    LINKS_PER_HOST,
    STORY_WEEK,
    BusyWorld,
    before,
    busy_world,
    miscounted,
    rude_visits,
    story_start,
    what_is_left,
)

KILLS = 20


@dataclass(frozen=True)
class Reference:
    """A week without a crash: what it left, and how long a process needs before it works (seconds)."""

    left: dict[str, object]
    start_up: float


def test_a_week_killed_at_twenty_random_moments_ends_as_without_a_crash(tmp_path: Path) -> None:
    with busy_world(tmp_path / "world") as world:
        reference = _uninterrupted(world, tmp_path / "reference")
        _kill_and_resume(world, tmp_path / "killed", reference, seed=20260928)


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_weeks_killed_at_hundreds_of_moments_end_as_without_a_crash(tmp_path: Path) -> None:
    with busy_world(tmp_path / "world") as world:
        reference = _uninterrupted(world, tmp_path / "reference")
        for seed in range(20):
            _kill_and_resume(world, tmp_path / f"killed-{seed}", reference, seed=seed)


def _uninterrupted(world: BusyWorld, folder: Path) -> Reference:
    home = world.make_home(folder, registered_at=before(story_start()), story=True)
    assert _start(home).wait(timeout=60) == 0
    clock = SystemClock()
    started = clock.monotonic()
    assert _start(home).wait(timeout=60) == 0
    start_up = clock.monotonic() - started
    left = what_is_left(home, story_start())
    assert len(left["links"]) == HOSTS * LINKS_PER_HOST  # type: ignore[arg-type]
    assert rude_visits(world.log, kills=[]) == []
    return Reference(left=left, start_up=start_up)


def _kill_and_resume(world: BusyWorld, folder: Path, reference: Reference, *, seed: int) -> None:
    home = world.make_home(folder, registered_at=before(story_start()), story=True)
    kills = _die_often(home, reference.start_up, random.Random(seed))
    assert _start(home).wait(timeout=60) == 0

    assert what_is_left(home, story_start()) == reference.left, f"seed {seed}"
    with build_app(home, env={}) as app:
        assert [wrong for run in app.store.runs() for wrong in miscounted(app.store, run)] == []
    assert rude_visits(world.log, kills) == []


def _die_often(home: Path, start_up: float, chance: random.Random) -> list[float]:
    """Start the week and kill it, again and again; when it was killed, in monotonic seconds."""
    kills = []
    while len(kills) < KILLS:
        process = _start(home)
        try:
            process.wait(timeout=chance.uniform(start_up / 2, start_up + 0.4))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)
            kills.append(SystemClock().monotonic())
        else:
            pytest.fail(f"the week ended with status {process.returncode} after {len(kills)} of {KILLS} kills")
    return kills


def _start(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "linkwatch_pipeline_tests.drive", str(home), STORY_WEEK])
