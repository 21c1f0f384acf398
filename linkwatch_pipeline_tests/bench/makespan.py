"""How long a week takes against the least that politeness allows: in virtual time, and over real HTTP on loopback.

The bound is the larger of all work shared by the slots, and of the busiest host alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline_tests.bench.cpu import make_watching_home, served
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.gates.busy_week import story_start
from linkwatch_pipeline_tests.simulation.engine import Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer

CONCURRENCY = 20
COOLDOWN = timedelta(seconds=1)
MEAN_SERVICE = timedelta(seconds=2)
LOOPBACK_HOSTS, LOOPBACK_COOLDOWN = 200, 0.05

Service = Callable[[str, int], timedelta]


def simulated(folder: Path) -> Iterator[Result]:
    """The shapes of SPEC 3, each with a fixed and with a varied service time."""
    for number, (shape, links_per_host) in enumerate(shapes().items()):
        for kind, service in (("fixed 2 s", _fixed), ("varied 0.5-8 s", _varied)):
            yield _simulate(folder / f"{number}-{kind[:5]}", f"{shape}, {kind}", links_per_host, service)


def shapes() -> dict[str, list[int]]:
    """Links per host, in the order of the hosts' names."""
    rng = random.Random(20260928)
    zipf = _zipf(hosts=1000, links=6000, most=100)
    shuffled = zipf.copy()
    rng.shuffle(shuffled)
    return {
        "uniform 1000 x 6": [6] * 1000,
        "Zipf, at most 100, shuffled": shuffled,
        "Zipf, the longest chains first": zipf,
        "Zipf, the longest chains last": zipf[::-1],
        "one x 100 and 5,900 single": [100] + [1] * 5900,
        "5,900 single and one x 100": [1] * 5900 + [100],
    }


def _zipf(*, hosts: int, links: int, most: int) -> list[int]:
    weights = [1 / rank for rank in range(1, hosts + 1)]
    scale = links / sum(weights)
    counts = [max(1, min(most, round(weight * scale))) for weight in weights]
    for index in range(hosts):  # what the cap took away goes to the next hosts
        missing = links - sum(counts)
        counts[index] += max(0, min(most - counts[index], missing))
    return sorted(counts, reverse=True)


def _fixed(url: str, visit: int) -> timedelta:
    return MEAN_SERVICE


def _varied(url: str, visit: int) -> timedelta:
    """Log-normal around 2 s, between 0.5 and 8 s, the same for a URL each time."""
    rng = random.Random(url)
    return timedelta(seconds=min(max(rng.lognormvariate(0.55, 0.5), 0.5), 8.0))


def _simulate(folder: Path, name: str, links_per_host: Sequence[int], service: Service) -> Result:
    folder.mkdir(parents=True)
    urls = [f"https://h{host:05d}.example/{n}" for host, links in enumerate(links_per_host) for n in range(links)]
    engine = Engine(folder, lambda url, visit: Answer(takes=service(url, visit)), concurrency=CONCURRENCY)
    began, cpu = engine.clock.now(), time.process_time()
    with engine.store.grouped():  # virtual time stands still in commits, so none has to reach the disk
        engine.register(urls)
        run = engine.observe()
    assert run.totals is not None
    assert run.totals.terminal == len(urls)
    took = engine.clock.now() - began
    bound = _bound(urls, service)
    engine.store.close()
    return Result(
        f"makespan / bound, {name}",
        took / bound,
        "",
        1.02,
        f"{took.total_seconds():.1f} s against {bound.total_seconds():.1f} s; {len(urls)} links on "
        f"{len(links_per_host)} hosts, concurrency {CONCURRENCY}; {time.process_time() - cpu:.0f} s of CPU",
    )


def _bound(urls: Sequence[str], service: Service) -> timedelta:
    """All work over the slots, or the busiest host with its rests between two visits."""
    total, by_host = timedelta(0), dict[str, timedelta]()
    for url in urls:
        takes = service(url, 0)
        total += takes
        by_host[host_key(url)] = by_host.get(host_key(url), -COOLDOWN) + takes + COOLDOWN
    return max(total / CONCURRENCY, *by_host.values())


def on_loopback(folder: Path) -> Iterator[Result]:
    """Real HTTP through the safe fetcher, real commits, one process; the world runs in another.

    The longer service is near SPEC 3's; under the shorter one the disk's commits weigh more than the requests.
    """
    yield _visit_loopback(folder / "long", [0.6, 0.9, 1.0, 1.1, 1.4], target=1.05)
    yield _visit_loopback(folder / "short", [0.12, 0.18, 0.2, 0.22, 0.28], target=None)


def _visit_loopback(folder: Path, services: Sequence[float], *, target: float | None) -> Result:
    with served(folder, hosts=LOOPBACK_HOSTS, delays=services) as (world, urls):
        home = folder / "home"
        make_watching_home(home, world, urls, cooldown=LOOPBACK_COOLDOWN)
        with build_app(home, env={}) as opened:
            app = opened.in_week(story_start())
            run = begin_week(app.store, story_start(), now=app.clock.now())
            with app.sole_runner() as worker:
                app.observe(run, None, worker=worker)
            assert finish_run(app.store, run.run_id, now=app.clock.now()).totals is not None
        log = world.log
    took = max(hit.ended for hit in log.hits) - min(hit.started for hit in log.hits)
    assert len(log.hits) == len(urls)
    assert all(log.overlaps(host) == [] for host in log.hosts())
    busiest = sum(services) + (len(services) - 1) * LOOPBACK_COOLDOWN
    bound = max(LOOPBACK_HOSTS * sum(services) / CONCURRENCY, busiest)
    return Result(
        f"makespan / bound, real HTTP on loopback, {services[0]:g}-{services[-1]:g} s each",
        took / bound,
        "",
        target,
        f"{took:.2f} s against {bound:.2f} s, by the servers' log; {len(urls)} links on {LOOPBACK_HOSTS} hosts, "
        f"cooldown {LOOPBACK_COOLDOWN} s, concurrency {CONCURRENCY}",
    )
