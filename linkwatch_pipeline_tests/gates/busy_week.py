"""A week of 50 hosts in a world of its own process, homes that watch it, and what is left of such a week."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.home import FixtureMark
from linkwatch_pipeline.bootstrap import build_app, make_home
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.runs import Run, RunState, count_chains
from linkwatch_pipeline.domain.timestamps import WEEK, parse_week
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline_tests.world import Hit, RequestLog, WorldProcess

HOSTS = 50
LINKS_PER_HOST = 4
COOLDOWN = timedelta(seconds=0.05)
STORY_WEEK = "2026-09-28"
_UNUSED = "unused.example"
_SHARED = "shared.example"
_THROTTLING_HOST = 7

Page = Mapping[str, Any]


@dataclass(frozen=True)
class BusyWorld:
    """`hosts` answer for themselves, `shared` is where their redirects lead; `urls` are all that is watched."""

    hosts: WorldProcess
    shared: WorldProcess
    urls: tuple[str, ...]

    @property
    def log(self) -> RequestLog:
        return RequestLog([*self.hosts.log.hits, *self.shared.log.hits])

    def answer_up_to(self, step: int) -> None:
        """Let the hosts of a world in steps answer for more pages from now on; see `busy_world`."""
        self.hosts.week = step

    def wait_for_visits(
        self, process: subprocess.Popen[Any], visits: int, *, step: int = 0, patience: float = 250.0
    ) -> None:
        """Until so many visits have ended here that began in this step or later.

        Raises AssertionError if the process ends before, or it takes long (seconds).
        """
        clock = SystemClock()
        deadline = clock.monotonic() + patience
        while sum(hit.week >= step for hit in self.log.hits) < visits:
            assert clock.monotonic() < deadline, "the run does not get on"
            try:
                process.wait(timeout=0.005)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"ended early, with status {process.returncode}")

    def make_home(self, folder: Path, *, registered_at: datetime, story: bool) -> Path:
        """A fixture home that watches everything here, with a short cooldown."""
        pairs = tuple(plain for world in (self.hosts, self.shared) for plain, _ in world.map.hosts.values())
        home = make_home(folder, env={}, fixture=FixtureMark(pairs=pairs, story=story))
        with home.settings_file.open("a") as settings:
            settings.write(f"\ncooldown_seconds = {COOLDOWN.total_seconds()}\n")
            # All at once: in steps, those that let wait must not keep others from being asked.
            settings.write(f"concurrency = {len(self.hosts.map.hosts)}\n")
        with build_app(folder, env={}) as app:
            for number, url in enumerate(self.urls):
                register_link(
                    app.store,
                    link_id=f"link-{number:03d}",
                    url=url,
                    owner="docs-team",
                    notify="docs-team@example.com",
                    marker="guide-v1",
                    confirm=None,
                    now=registered_at,
                )
        return folder


@contextmanager
def busy_world(
    folder: Path, *, hosts: int = HOSTS, delay: float = 0.05, throttles: bool = True, in_steps_of: int | None = None
) -> Iterator[BusyWorld]:
    """The world; each answer takes about `delay` seconds. With `throttles` one page always answers 429.

    With `in_steps_of` only so many pages are answered, those that every host is asked for first, and the others let
    wait; with each step of `answer_up_to`, so many more are answered. However slow the machine is, a process that is
    patient (see `patience`) cannot get further than it should.
    """
    for name in ("shared", "hosts"):
        (folder / name).mkdir(parents=True)
    # Two worlds, since a redirect's target has to be known first. Both begin with the same address, so that of the
    # second is left unused.
    with WorldProcess({_SHARED: {"otherwise": _page(200, delay)}}, folder / "shared") as shared:
        landing = f"http://{_address(shared, _SHARED)}/landing"
        names = [f"host-{number:02d}.example" for number in range(hosts)]
        sites: dict[str, Page] = {_UNUSED: {}}
        for number, name in enumerate(names):
            # Between half and one and a half times the delay: visits end at different moments.
            own_delay = delay * (0.5 + number % 5 / 4)
            pages = _pages(number, own_delay, landing, throttles=throttles)
            if in_steps_of is not None:
                steps = [(place * hosts + number) // in_steps_of for place in range(LINKS_PER_HOST)]
                pages = _in_steps(pages, steps)
            sites[name] = {"pages": pages}
        with WorldProcess(sites, folder / "hosts") as world:
            urls = tuple(f"http://{_address(world, name)}{path}" for name in names for path in sites[name]["pages"])
            yield BusyWorld(world, shared, urls)


def _pages(number: int, delay: float, landing: str, *, throttles: bool) -> dict[str, Page]:
    """Answers that depend on nothing but the URL, so that a request that is made twice sees the same twice."""
    pages = {f"/{place}": _page(200, delay) for place in range(LINKS_PER_HOST)}
    if number % 3 == 0:
        pages["/1"] = _page(404, delay)
    if number % 5 == 0:
        pages["/2"] = {"status": 302, "delay": delay, "headers": {"Location": landing}}
    if number % 7 == 0:
        pages["/3"] = _page(500, delay)
    if number % 11 == 0:
        pages["/0"] = {**_page(200, delay), "body": "Domain for sale"}
    if throttles and number == _THROTTLING_HOST:
        pages["/0"] = {**_page(429, delay), "headers": {"Retry-After": "1"}}
    return pages


def _in_steps(pages: Mapping[str, Page], steps: Iterable[int]) -> dict[str, Page]:
    """Each page unanswered before its step: the world's weeks are the steps."""
    return {path: {**page, "from_week": step} for step, (path, page) in zip(steps, pages.items(), strict=True)}


def _page(status: int, delay: float) -> Page:
    return {"status": status, "delay": delay}


def _address(world: WorldProcess, name: str) -> str:
    ip, port = world.map.hosts[name][0]
    return f"{ip}:{port}"


def what_is_left(home: Path, week: datetime) -> dict[str, list[object]]:
    """Everything a week recorded that does not depend on the time of day."""
    with build_app(home, env={}) as app:
        return records(app.store, week)


def records(store: Store, week: datetime) -> dict[str, list[object]]:
    """Links, observations, transitions, notices and the arithmetic of the week's runs, without their times."""
    runs = [run for run in store.runs() if run.intended_at == week]
    return {
        "links": [
            (link.id, link.state, link.version, link.last_sequence, link.broken_streak) for link in store.links()
        ],
        "observations": [
            (o.job_id, o.link_id, o.sequence, o.status, o.outcome, o.reason, o.retry_of, o.final_url, len(o.redirects))
            for o in store.observations()
        ],
        "transitions": [(t.id, t.from_state, t.to_state, t.sequence, t.job_id) for t in store.transitions()],
        "notices": [(n.transition_id, n.status, n.attempts, n.observed_status) for n in _by_id(store.notices())],
        "runs": [(run.run_id, run.state, run.expected, run.dispatched, run.totals) for run in runs],
        "chains": [
            (c.run_id, c.host, c.head, c.remaining, c.total, dict(c.counts))
            for r in runs
            for c in store.chains(r.run_id)
        ],
        "jobs": [(j.job_id, j.sequence, j.status, j.outcome, j.reason) for r in runs for j in store.jobs(r.run_id)],
    }


def _by_id(notices: Iterable[Notice]) -> list[Notice]:
    """The store has them by age, which depends on the time of day."""
    return sorted(notices, key=lambda notice: notice.transition_id)


def miscounted(store: Store, run: Run) -> list[str]:
    """Where a closed run's counters differ from its rows; [] if they agree."""
    wrong = []
    jobs = list(store.jobs(run.run_id))
    for chain in store.chains(run.run_id):
        ends = Counter((j.outcome or j.status).value for j in jobs if j.host == chain.host)
        if ends != Counter(chain.counts) or chain.remaining or chain.head is not None or chain.total != ends.total():
            wrong.append(f"{chain.host}: {chain} but its jobs ended {dict(ends)}")
    if run.state is not RunState.CLOSED or run.totals != count_chains(store.chains(run.run_id)):
        wrong.append(f"{run}")
    observed = {observation.job_id for observation in store.observations(run_id=run.run_id)}
    done = {job.job_id for job in jobs if job.status == "done"}
    if observed != done or len(jobs) != run.expected:
        wrong.append(f"{len(jobs)} jobs of {run.expected}; done but not observed, or the reverse: {observed ^ done}")
    return wrong


def rude_visits(log: RequestLog, kills: list[float], *, since: float = 0.0) -> list[tuple[Hit, Hit]]:
    """Visits of one host that overlapped or came within its cooldown, but for those whose client was killed.

    Args:
        kills: when clients were killed.
        since: what began before is left out. Both in the machine's monotonic seconds.
    """
    return [
        (before, after)
        for host in log.hosts()
        for before, after in pairwise(hit for hit in log.of(host) if hit.started >= since)
        if after.started - before.ended < COOLDOWN.total_seconds()
        and not any(before.started <= kill <= before.ended for kill in kills)
    ]


def story_start() -> datetime:
    return parse_week(STORY_WEEK)


def before(week: datetime) -> datetime:
    """A moment at which a link may have been registered to belong to a week."""
    return week - WEEK
