"""A week killed again and again: `kill -9` of the whole process, at random moments, resumed each time."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
from linkwatch_pipeline_tests.gates.evidence import Evidence

KILLS = 20
AT_WORK = 14  # of them
STEP = 13  # pages that are answered more in each life at work: the last of these gets nearly to the end of the week
_WHOLE = HOSTS * LINKS_PER_HOST  # steps, at least
_PATIENCE = 250.0  # seconds for a week to end
_LONGEST_START = 2.0  # seconds, on a machine that has other things to do


@dataclass(frozen=True)
class Reference:
    """A week without a crash: what it left, and how long a process needs before it works (seconds)."""

    left: dict[str, list[object]]
    requests: int
    start_up: float


def walk_crashes(folder: Path, seeds: range) -> Evidence:
    """For each seed a home whose week is killed 20 times; it has to end as the same week without a crash."""
    evidence = Evidence()
    with busy_world(folder / "world", in_steps_of=STEP) as world:
        reference = _uninterrupted(world, folder / "reference")
        kinds = ("links", "observations", "transitions", "notices", "jobs")
        counts = {kind: len(reference.left[kind]) for kind in kinds}
        evidence.say(f"Without a crash the week leaves, from {len(world.hosts.map.hosts)} hosts: `{counts}`.")
        for seed in seeds:
            _kill_and_resume(world, folder / f"killed-{seed}", reference, seed, evidence)
    return evidence


def _uninterrupted(world: BusyWorld, folder: Path) -> Reference:
    world.answer_up_to(_WHOLE)
    home = world.make_home(folder, registered_at=before(story_start()), story=True)
    assert _start(home).wait(timeout=_PATIENCE) == 0
    clock = SystemClock()
    started = clock.monotonic()
    assert _start(home).wait(timeout=_PATIENCE) == 0
    start_up = min(clock.monotonic() - started, _LONGEST_START)
    assert rude_visits(world.log, kills=[]) == []
    left = what_is_left(home, story_start())
    return Reference(left=left, requests=len(world.log.hits), start_up=start_up)


def _kill_and_resume(world: BusyWorld, folder: Path, reference: Reference, seed: int, evidence: Evidence) -> None:
    home = world.make_home(folder, registered_at=before(story_start()), story=True)
    began, already = SystemClock().monotonic(), len(world.log.hits)
    kills, observed = _die_often(world, home, reference.start_up, random.Random(seed))
    world.answer_up_to(_WHOLE)
    assert _start(home).wait(timeout=_PATIENCE) == 0
    repeated = len(world.log.hits) - already - reference.requests
    evidence.say(f"Seed {seed}: observations in the store at each kill: `{observed}`.")
    evidence.say(f"Seed {seed}: {repeated} requests were made again; their client was killed before it had recorded.")
    evidence.claim(f"seed {seed}: kills in the middle of the week", len(set(observed) - {0}) > KILLS // 4, True)
    left = what_is_left(home, story_start())
    for kind, records in reference.left.items():
        evidence.claim(f"seed {seed}: {kind} as without a crash", left[kind] == records, True)
    with build_app(home, env={}) as app:
        wrong = [found for run in app.store.runs() for found in miscounted(app.store, run)]
    evidence.claim(f"seed {seed}: counters that differ from the rows", wrong, [])
    evidence.claim(
        f"seed {seed}: visits that overlapped or came too early", rude_visits(world.log, kills, since=began), []
    )


def _die_often(world: BusyWorld, home: Path, start_up: float, chance: random.Random) -> tuple[list[float], list[int]]:
    """Start the week and kill it, again and again; when (monotonic seconds), and what was observed by then.

    Some die while they start, most a little after some of their visits have ended.
    """
    kills, observed = list[float](), list[int]()
    step = 0
    for at_work in chance.sample([True] * AT_WORK + [False] * (KILLS - AT_WORK), KILLS):
        step += at_work
        world.answer_up_to(step)
        process = _start(home)
        if at_work:
            world.wait_for_visits(process, chance.randint(1, STEP), step=step)
        if at_work and step % 2:  # sometimes with something recorded, on the slowest machine, too
            _wait_for_more(home, process, max(observed, default=0))
        try:
            process.wait(timeout=chance.uniform(0, 0.03) if at_work else chance.uniform(start_up / 2, start_up))
            raise AssertionError(f"ended with status {process.returncode} after {len(kills)} of {KILLS} kills")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=_PATIENCE)
        kills.append(SystemClock().monotonic())
        observed.append(_count(home))
    return kills, observed


def _count(home: Path) -> int:
    """How many observations are recorded."""
    with build_app(home, env={}) as app:
        return sum(1 for _ in app.store.observations())


def _wait_for_more(home: Path, process: subprocess.Popen[bytes], count: int) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + _PATIENCE
    while _count(home) <= count:
        assert clock.monotonic() < deadline, "the run records nothing"
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"ended early, with status {process.wait(timeout=0.01)}")


def _start(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "linkwatch_pipeline_tests.drive", str(home), STORY_WEEK])
