"""Other link checkers on the same pages in the same run: at our politeness, and as fast as each can.

They are looked for in the folder that the variable PEERS names (a virtual environment and a node_modules in one), then
on the PATH; one that is not installed is named and left out. docs/performance.md says how to install them.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline_tests.bench.cpu import CONCURRENCY, make_watching_home, served
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.gates.busy_week import story_start
from linkwatch_pipeline_tests.world import RequestLog, WorldProcess

POLITE_HOSTS, POLITE_DELAYS, COOLDOWN = 100, (0.6, 0.9, 1.0, 1.1, 1.4), 0.05
FAST_HOSTS, FAST_LINKS_PER_HOST = 300, 20
SAMPLE = 200


def polite_peers(folder: Path) -> Iterator[Result]:
    """The makespan over its bound, by the servers' own log: ours, and lychee told to be as polite.

    One request at a time on a host and the same pause are asked of both; lychee counts its pause from start to start.
    """
    rounds: dict[str, Callable[[WorldProcess, list[str]], float]] = {
        "linkwatch": lambda world, urls: _watch(folder / "home", world, urls, cooldown=COOLDOWN)
    }
    lychee = find_peer("lychee")
    if lychee is not None:
        rounds["lychee, shuffled list"] = lambda _, urls: _lychee_politely(lychee, _shuffled(urls))
        rounds["lychee, list grouped by host"] = lambda _, urls: _lychee_politely(lychee, urls)
    for number, (name, visit) in enumerate(rounds.items()):
        with served(folder / f"world-{number}", hosts=POLITE_HOSTS, delays=POLITE_DELAYS) as (world, urls):
            visit(world, urls)
            log = world.log
        yield _pace(name, log, len(urls))


def fast_peers(folder: Path) -> Iterator[Result]:
    """URLs a second without any pause, each tool from its start to its end; ours dispatches and commits what it saw.

    The slowest of them is given a sample of the 6,000 pages.
    """
    with served(folder, hosts=FAST_HOSTS, delays=[0.0] * FAST_LINKS_PER_HOST) as (world, urls):
        ours = _watch(folder / "home", world, urls, cooldown=0.0)
        visited = 0
        for name, took in chain([("linkwatch", ours)], _times_of_peers(folder, urls)):
            asked, visited = len(world.log.hits) - visited, len(world.log.hits)
            rate = asked / took
            detail = f"{rate:.0f} URLs/s; {asked} requests in {took:.1f} s"
            yield Result(f"URLs/s without politeness, {name} / linkwatch", rate * ours / len(urls), "", None, detail)


def find_peer(name: str) -> str | None:
    """The program of that name, None after saying that it is not installed."""
    folder = os.environ.get("PEERS", "")
    places = [f"{folder}/bin", f"{folder}/node_modules/.bin"] if folder else []
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", os.defpath)]))
    if found is None:
        print(f"{name} is not installed: left out")
    return found


def _watch(home: Path, world: WorldProcess, urls: Sequence[str], *, cooldown: float) -> float:
    """Wall seconds of a whole run: dispatch, checks, commits, close."""
    make_watching_home(home, world, urls, cooldown=cooldown)
    started = time.perf_counter()
    with build_app(home, env={}) as opened:
        app = opened.in_week(story_start())
        run = begin_week(app.store, story_start(), now=app.clock.now())
        with app.sole_runner() as worker:
            app.observe(run, None, worker=worker)
        totals = finish_run(app.store, run.run_id, now=app.clock.now()).totals
    assert totals is not None
    assert totals.by_end == {"reachable": len(urls)}, totals
    return time.perf_counter() - started


def _lychee_politely(lychee: str, urls: Sequence[str]) -> float:
    interval = f"{COOLDOWN * 1000:.0f}ms"
    politeness = ["--host-concurrency", "1", "--host-request-interval", interval, "--max-retries", "0"]
    return _lychee(lychee, urls, *politeness)


def _lychee(lychee: str, urls: Sequence[str], *options: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "links.txt"
        listed.write_text("\n".join(urls) + "\n")
        command = [lychee, "--no-progress", "--max-concurrency", str(CONCURRENCY), "--timeout", "10", *options]
        return _timed([*command, str(listed)])


def _times_of_peers(folder: Path, urls: Sequence[str]) -> Iterator[tuple[str, float]]:
    page = folder / "site" / "index.html"
    page.parent.mkdir()
    page.write_text("<!DOCTYPE html>" + "".join(f'<a href="{url}">x</a>\n' for url in urls))
    if lychee := find_peer("lychee"):
        yield "lychee", _lychee(lychee, urls, "--host-concurrency", "20", "--host-request-interval", "0ms")
    if linkinator := find_peer("linkinator"):
        yield "linkinator", _timed([linkinator, str(page.parent), "--concurrency", str(CONCURRENCY), "--silent"])
    if linkchecker := find_peer("linkchecker"):
        settings = folder / "linkcheckerrc"
        settings.write_text("[checking]\nmaxrequestspersecond=100000\n")
        options = ["--config", str(settings), "--threads", str(CONCURRENCY), "--no-robots", "-r", "0", "-o", "none"]
        yield "linkchecker", _timed([linkchecker, *options, "--stdin"], "\n".join(urls[:SAMPLE]))


def _timed(command: Sequence[str], said: str = "") -> float:
    started = time.perf_counter()
    done = subprocess.run(command, input=said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return time.perf_counter() - started


def _shuffled(urls: Sequence[str]) -> list[str]:
    shuffled = list(urls)
    random.Random(20260928).shuffle(shuffled)
    return shuffled


def _pace(name: str, log: RequestLog, links: int) -> Result:
    took = max(hit.ended for hit in log.hits) - min(hit.started for hit in log.hits)
    bound = POLITE_HOSTS * sum(POLITE_DELAYS) / CONCURRENCY
    overlaps = sum(len(log.overlaps(host)) for host in log.hosts())
    return Result(
        f"makespan / bound, {name}",
        took / bound,
        "",
        1.05 if name == "linkwatch" else None,
        f"{took:.1f} s against {bound:.1f} s; {len(log.hits)} requests for {links} links, {overlaps} overlapped",
    )
