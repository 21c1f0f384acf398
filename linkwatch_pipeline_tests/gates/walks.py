"""The gates of SPEC 15 that need no cloud, each walked once: the tests and the page of the observed run use these.

A walk does what its gate says on real parts, checks its claims, and leaves the evidence.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.fixture_site import FixtureSite
from linkwatch_pipeline.adapters.home import FixtureMark
from linkwatch_pipeline.adapters.metrics.local import LocalMetrics
from linkwatch_pipeline.bootstrap import App, build_app, make_home, new_worker
from linkwatch_pipeline.domain.runs import JobRecord, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.use_cases.check import check_job
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.drive import drive_week
from linkwatch_pipeline_tests.gates.busy_week import before, records, story_start
from linkwatch_pipeline_tests.gates.evidence import Desk, Evidence
from linkwatch_pipeline_tests.patience import as_released
from linkwatch_pipeline_tests.simulation.engine import Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer as ScriptedAnswer
from linkwatch_pipeline_tests.world import Answer, World

STORY = (200, 404, 404, 200)
MARKER = "guide-v1"


def walk_state_changes(folder: Path) -> Evidence:
    """200, 404, 404, 200: four observations, two transitions, two pending notices."""
    evidence = Evidence()
    with _fixture_desk(folder, evidence) as (desk, site):
        _play_story(desk, site)
        desk.run("inspect", "guide")
        desk.close_transcript()
        evidence.claim("records", desk.counts(), {"links": 1, "observations": 4, "transitions": 2, "outbox": 2})
        _claim_classic_proof(evidence, desk.document("inspect"))
    return evidence


def walk_restart_and_replay(folder: Path) -> Evidence:
    """Restart, and offer again what was committed: by hand with the site gone, and as a redelivered message."""
    evidence = Evidence()
    with _fixture_desk(folder, evidence) as (desk, site):
        _play_story(desk, site)
        desk.close_transcript()
    evidence.say("The site is switched off now, so a request would be seen as a failure.")
    left = desk.document("inspect")
    for sequence, status in enumerate(STORY, start=1):
        desk.run("check", "guide", "--sequence", str(sequence), expect=0 if status == 200 else 1)
    desk.close_transcript()
    evidence.claim("records are unchanged", desk.document("inspect") == left, True)
    command = [str(Path(sys.executable).parent / "linkwatch"), "--home", str(desk.home), "inspect", "--json"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    evidence.claim("a new process sees the same", json.loads(seen) == left, True)
    _redeliver(folder / "redelivered", evidence)
    return evidence


def walk_ambiguous_answers(folder: Path) -> Evidence:
    """A broken link, then a timeout, a 429 and a page without its marker: three outcomes, no recovery."""
    evidence = Evidence()
    with _fixture_desk(folder, evidence) as (desk, site):
        site.set(status=404)
        desk.run("check", "guide", "--sequence", "1", expect=1)
        site.set(delay_seconds=3)
        with as_released():
            desk.run("check", "guide", "--sequence", "2", expect=1)
        site.set(status=429, retry_after=1)
        desk.run("check", "guide", "--sequence", "3", expect=1)
        site.set(body="Domain for sale")
        desk.run("check", "guide", "--sequence", "4", expect=1)
        desk.close_transcript()
        found = desk.document("inspect")
    evidence.claim(
        "outcomes",
        [(o["status"], o["outcome"], o["reason"]) for o in found["observations"]],
        [
            (404, "broken", "gone"),
            (None, "uncertain", "timeout"),
            (429, "throttled", "rate_limited"),
            (200, "content_changed", "marker_missing"),
        ],
    )
    evidence.claim("the link's state", found["links"][0]["state"], "broken")
    evidence.claim("notices", [n["transition_id"] for n in found["outbox"]], ["guide:1"])
    return evidence


def walk_host_coordination(folder: Path) -> Evidence:
    """Several URLs on one host and one on another: one visit at a time there, and the other host moves."""
    evidence, cooldown = Evidence(), 0.2
    pages = {f"/{number}": Answer(delay=0.15) for number in range(5)}
    world = World({"docs.example.com": pages, "blog.example.com": {"/post": Answer(delay=0.15)}})
    with world.in_thread():
        with _story_app(folder / "home", world, cooldown=cooldown) as app:
            for number in range(5):
                _register(app, f"docs-{number}", f"http://docs.example.com/{number}")
            _register(app, "blog", "http://blog.example.com/post")
            drive_week(app, story_start())
        log = world.log
    docs, blog = log.of("docs.example.com"), log.of("blog.example.com")
    first = min(hit.started for hit in docs + blog)
    evidence.table(
        ["host", "target", "began after (s)", "ended after (s)"],
        [
            (hit.host, hit.target, f"{hit.started - first:.3f}", f"{hit.ended - first:.3f}")
            for hit in sorted(docs + blog, key=lambda hit: hit.started)
        ],
    )
    evidence.claim("visits of docs.example.com", len(docs), 5)
    evidence.claim("of them overlapping", len(log.overlaps("docs.example.com")), 0)
    evidence.claim(f"rests shorter than {cooldown} s", sum(gap < cooldown for gap in log.gaps("docs.example.com")), 0)
    evidence.claim("the other host was served before the first one was done", blog[0].ended < docs[-1].started, True)
    return evidence


def walk_missed_schedule(folder: Path) -> Evidence:
    """Nobody dispatches; then a dispatcher dies half-way; then the run is resumed. Looked at every five minutes."""
    evidence = Evidence()
    folder.mkdir(parents=True, exist_ok=True)
    engine = Engine(folder, lambda url, visit: ScriptedAnswer(takes=timedelta(seconds=2)))
    metrics = LocalMetrics(folder / "metrics.jsonl")
    monday = engine.clock.now()
    engine.register(f"https://docs.example.com/{number}" for number in range(30))
    seen: dict[str, str] = {}

    def look_until(minute: int) -> None:
        while engine.clock.now() <= monday + timedelta(minutes=minute):
            now = f"{engine.clock.now():%H:%M}"
            seen[now] = ", ".join(f.code for f in watch_health(engine.store, metrics, clock=engine.clock)) or "healthy"
            engine.clock.advance(timedelta(minutes=5))

    look_until(10)
    start_week(engine.store, monday, now=engine.clock.now())  # a dispatcher that dies at once
    look_until(35)
    run = engine.observe()  # what `linkwatch resume` does
    resumed = {"state": run.state.value, "observed": len(list(engine.store.observations(run_id=run.run_id)))}
    look_until(50)
    evidence.table(["looked at (UTC)", "the independent check says"], seen.items())
    evidence.claim("before 09:05 nothing is wrong", seen["09:00"], "healthy")
    evidence.claim("a run that nobody created is missing", (seen["09:05"], seen["09:10"]), ("run_missing",) * 2)
    evidence.claim("its dispatch began at 09:15 and stopped", (seen["09:15"], seen["09:25"]), ("healthy",) * 2)
    evidence.claim("late by 09:35", seen["09:35"], "run_half_dispatched, run_late")
    evidence.claim("after `linkwatch resume`", resumed, {"state": "closed", "observed": 30})
    evidence.claim("well again", list(seen.values())[-1], "healthy")
    numbers = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    beats = sum(number["name"] == "Heartbeat" for number in numbers)
    evidence.claim("heartbeats, one for each look", beats == len(seen), True)
    engine.clock.advance(WEEK + monday - engine.clock.now() + timedelta(minutes=5))
    next_week = [f.code for f in watch_health(engine.store, metrics, clock=engine.clock)]
    evidence.claim("the next week, never begun, at 09:05", next_week, ["run_missing"])
    engine.store.close()
    return evidence


def walk_checkpoints(folder: Path) -> Evidence:
    """The checkpoints of the reference program, by the command line, against the fixture site."""
    evidence = Evidence()
    with _fixture_desk(folder, evidence) as (desk, site):
        _play_story(desk, site)
        desk.note("the page answers 429 with Retry-After: 1")
        site.set(status=429, retry_after=1)
        desk.run("check", "guide", "--sequence", "5", expect=1)
        desk.note("200, but the page says 'Domain for sale'")
        site.set(body="Domain for sale")
        desk.run("check", "guide", "--sequence", "6", expect=1)
        desk.note("delay_seconds: 3, and a fixture home waits 2 s")
        site.set(delay_seconds=3)
        with as_released():
            desk.run("check", "guide", "--sequence", "7", expect=1)
        desk.note("429 with Retry-After: 30, and somebody who does not wait")
        site.set(status=429)
        desk.run("check", "guide", "--sequence", "8", expect=1)
        desk.run("check", "guide", "--sequence", "9", expect=1)
        desk.run("outbox")
        desk.close_transcript()
        found = desk.document("inspect")
    evidence.claim(
        "outcomes",
        [o["outcome"] for o in found["observations"]],
        ["reachable", "broken", "broken", "reachable", "throttled", "content_changed", "uncertain", "throttled"],
    )
    evidence.claim("reason of the delay", found["observations"][6]["reason"], "timeout")
    evidence.claim("the link's state", found["links"][0]["state"], "reachable")
    _claim_classic_proof(evidence, found)
    return evidence


@contextmanager
def _fixture_desk(folder: Path, evidence: Evidence) -> Iterator[tuple[Desk, FixtureSite]]:
    """A fixture home that watches one page with an expected text, and the site that serves it."""
    desk, site = Desk(folder, evidence), FixtureSite(port=0)
    with site.running():
        desk.run("init", "--fixture", f"{site.host}:{site.port}")
        _shorten_cooldown(desk.home, 0)
        desk.run("register", "guide", f"{site.url}guide", "--owner", "docs-team", "--notify", "docs-team@example.com",
                 "--expect", MARKER)  # fmt: skip
        yield desk, site


def _play_story(desk: Desk, site: FixtureSite) -> None:
    for sequence, status in enumerate(STORY, start=1):
        desk.note(f"the page answers {status}")
        site.set(status=status)
        desk.run("check", "guide", "--sequence", str(sequence), expect=0 if status == 200 else 1)


def _claim_classic_proof(evidence: Evidence, found: Any) -> None:
    changes = [(t["id"], t["from_state"], t["to_state"]) for t in found["transitions"]]
    evidence.claim("transitions", changes, [("guide:2", "reachable", "broken"), ("guide:3", "broken", "reachable")])
    notices = {n["transition_id"]: n["status"] for n in found["outbox"]}
    evidence.claim("notices", notices, {"guide:2": "pending", "guide:3": "pending"})


def _redeliver(folder: Path, evidence: Evidence) -> None:
    """A weekly run that is over, and its committed job's message delivered once more."""
    site = FixtureSite(port=0)
    make_home(folder, env={}, fixture=FixtureMark(pairs=((site.host, site.port),), story=True))
    with build_app(folder, env={}) as app:
        _register(app, "guide", f"{site.url}guide")
        with site.running():
            site.set(status=404)
            drive_week(app, story_start())
        job = app.store.get_job(weekly_run_id(story_start()), "guide")
        assert job is not None
        before_it = records(app.store, story_start())
        sent = asyncio.run(_deliver_again(app, job))
        evidence.claim(f"job `{job.job_id}` delivered again: jobs sent", sent, [])
        evidence.claim("records are unchanged", records(app.store, story_start()) == before_it, True)


async def _deliver_again(app: App, job: JobRecord) -> list[str]:
    sent: list[str] = []

    async def send(following: JobRecord, delay: timedelta) -> None:
        sent.append(following.job_id)

    async with app.checking(worker=new_worker("test")) as parts:
        await check_job(parts, job.message, send)
    return sent


@contextmanager
def _story_app(folder: Path, world: World, *, cooldown: float) -> Iterator[App]:
    """A story home in a world whose hosts have names."""
    pairs = tuple(plain for plain, _ in world.map.hosts.values())
    make_home(folder, env={}, fixture=FixtureMark(pairs=pairs, story=True))
    _shorten_cooldown(folder, cooldown)
    with build_app(folder, env={}, policy=world.policy, resolver=world.resolver) as app:
        yield app


def _shorten_cooldown(home: Path, seconds: float) -> None:
    with (home / "linkwatch.toml").open("a") as settings:
        settings.write(f"\ncooldown_seconds = {seconds}\n")


def _register(app: App, link_id: str, url: str) -> None:
    register_link(
        app.store,
        link_id=link_id,
        url=url,
        owner="docs-team",
        notify="docs-team@example.com",
        marker=None,
        confirm=None,
        now=before(story_start()),
    )
