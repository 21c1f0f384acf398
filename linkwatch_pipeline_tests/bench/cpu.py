"""What a check costs: the engine with its SQLite commits, politeness off, against bare httpx doing the same GETs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from linkwatch_pipeline.adapters.home import FixtureMark
from linkwatch_pipeline.bootstrap import build_app, make_home
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.gates.busy_week import before, story_start
from linkwatch_pipeline_tests.world import WorldProcess

HOSTS, LINKS_PER_HOST = 100, 10
CONCURRENCY = 20
ROUNDS = 3


def cpu_per_check(folder: Path) -> Result:
    """The best of some rounds of each, in turns; the world runs in a process of its own and does not count."""
    with served(folder, hosts=HOSTS, delays=[0.0] * LINKS_PER_HOST) as (world, urls):
        engine, bare = [], []
        for number in range(ROUNDS):
            engine.append(_engine_cpu(folder / f"home-{number}", world, urls))
            bare.append(_bare_cpu(urls))
    ours, theirs = min(engine) / len(urls) * 1000, min(bare) / len(urls) * 1000
    return Result(
        "CPU per check, engine / bare httpx",
        ours / theirs,
        "",
        2.0,
        f"{ours:.2f} ms against {theirs:.2f} ms; {len(urls)} URLs on {HOSTS} hosts, best of {ROUNDS}",
    )


@contextmanager
def served(folder: Path, *, hosts: int, delays: Sequence[float]) -> Iterator[tuple[WorldProcess, list[str]]]:
    """A world in a process of its own, and its URLs: each host has a page per delay (seconds), turned by one place."""
    folder.mkdir(parents=True, exist_ok=True)
    sites = {}
    for host in range(hosts):
        turned = [delays[(host + number) % len(delays)] for number in range(len(delays))]
        sites[f"host-{host}.example"] = {
            "pages": {f"/{number}": {"status": 200, "delay": delay} for number, delay in enumerate(turned)}
        }
    with WorldProcess(sites, folder) as world:
        addresses = [plain for plain, _ in world.map.hosts.values()]
        yield world, [f"http://{ip}:{port}/{number}" for ip, port in addresses for number in range(len(delays))]


def make_watching_home(folder: Path, world: WorldProcess, urls: Sequence[str], *, cooldown: float) -> None:
    """A story home that watches these URLs."""
    pairs = tuple(plain for plain, _ in world.map.hosts.values())
    home = make_home(folder, env={}, fixture=FixtureMark(pairs=pairs, story=True))
    home.settings_file.write_text(f"cooldown_seconds = {cooldown}\nconcurrency = {CONCURRENCY}\n")
    with build_app(folder, env={}) as app:
        for link in _links(urls):
            app.store.save_link(link, replaces=None)


def _links(urls: Sequence[str]) -> Iterator[Link]:
    for number, url in enumerate(urls):
        yield Link(
            id=f"link-{number:05d}",
            url=url,
            host=host_key(url),
            owner="docs-team",
            active_since=before(story_start()),
            allocations={},
        )


def _engine_cpu(folder: Path, world: WorldProcess, urls: Sequence[str]) -> float:
    make_watching_home(folder, world, urls, cooldown=0.0)
    with build_app(folder, env={}) as opened:
        app = opened.in_week(story_start())
        run = begin_week(app.store, story_start(), now=app.clock.now())
        with app.sole_runner() as worker:
            started = time.process_time()
            app.observe(run, None, worker=worker)
            spent = time.process_time() - started
        run = finish_run(app.store, run.run_id, now=app.clock.now())
        assert run.totals is not None
        assert run.totals.by_end == {"reachable": len(urls)}, run.totals
    return spent


def _bare_cpu(urls: Sequence[str]) -> float:
    started = time.process_time()
    asyncio.run(_get_all(urls))
    return time.process_time() - started


async def _get_all(urls: Sequence[str]) -> None:
    waiting = list(urls)

    async def work(client: httpx.AsyncClient) -> None:
        while waiting:
            response = await client.get(waiting.pop())
            assert response.status_code == 200

    async with httpx.AsyncClient(headers={"Connection": "close"}, timeout=10) as client:
        await asyncio.gather(*(work(client) for _ in range(CONCURRENCY)))
