"""More than one visit at once, where a host's owner agreed: the real engine in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.domain.allowances import host_of, leased_slot, slot_for, slots_of
from linkwatch_pipeline.domain.runs import RunState
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline_tests.builders import a_link, a_run
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, Request, Script
from linkwatch_pipeline_tests.use_cases.test_fair_dispatch import Interrupted

SECOND = timedelta(seconds=1)
Build = Callable[..., Engine]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    engines: list[Engine] = []

    def make(script: Script, *, allowed: int = 3, links: int = 90) -> Engine:
        engine = Engine(tmp_path, script)
        engine.allowances = {"big.example": allowed}
        engine.register(f"http://big.example/{n}" for n in range(links))
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.store.close()


def within_rest(visits: list[Request], at: datetime) -> int:
    """How many visits go on or rest at a moment."""
    return sum(v.started_at <= at < v.ended_at + SECOND for v in visits)


@pytest.mark.parametrize("allowed", [2, 3, 7])
def test_at_most_as_many_visits_as_agreed_go_on_or_rest_at_any_moment(build: Build, allowed: int) -> None:
    engine = build(lambda url, asked: Answer(takes=2 * SECOND), allowed=allowed)
    run = engine.observe()
    assert run.state is RunState.CLOSED
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 90}
    visits = engine.internet.visits("big.example")
    assert max(within_rest(visits, v.started_at) for v in visits) == allowed
    longest = max(chain.total for chain in engine.store.chains(run.run_id))
    assert engine.clock.now() - MONDAY == longest * 3 * SECOND - SECOND
    assert longest <= 1.5 * 90 / allowed


def test_a_pause_that_the_host_asks_for_counts_for_all_its_slots(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        throttled = url.endswith("/30") and asked == 0
        return Answer(status=429, retry_after="120") if throttled else Answer(takes=2 * SECOND)

    engine = build(script)
    engine.observe()
    visits = engine.internet.visits("big.example")
    (asked,) = [v for v in visits if v.asked_to_wait is not None]
    later = [v.started_at for v in visits if v.started_at > asked.ended_at]
    assert later
    assert min(later) - asked.ended_at >= timedelta(seconds=120)
    # Those that were on their way ended in their own time.
    assert sum(v.started_at <= asked.ended_at < v.ended_at for v in visits) <= 2


def test_a_redirect_within_the_host_stays_in_its_slot(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        return Answer() if "moved" in url else Answer(status=301, location=f"{url}-moved")

    engine = build(script)
    run = engine.observe()
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 90}
    visits = engine.internet.visits("big.example")
    assert len(visits) == 180
    assert max(within_rest(visits, v.started_at) for v in visits) <= 3


def test_redirects_from_elsewhere_use_the_first_slot(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        return Answer(status=302, location="http://big.example/in") if "from" in url else Answer()

    engine = build(script, links=0)
    engine.register(f"http://from-{n}.example/" for n in range(10))
    engine.observe()
    rest = engine.internet.shortest_rest("big.example")
    assert rest is not None
    assert rest >= SECOND


class Stop(Exception):
    """The dispatcher is gone."""


def stop() -> None:
    raise Stop


@pytest.mark.parametrize("then", [1, 2, 5])
def test_a_dispatch_that_is_resumed_with_another_allowance_keeps_what_it_began(tmp_path: Path, then: int) -> None:
    """Whatever call of the store was its last, every link is in exactly one chain, and is looked at once."""
    crashed_at, crashes = 0, True
    while crashes:
        (tmp_path / str(crashed_at)).mkdir()
        engine = Engine(tmp_path / str(crashed_at), lambda url, asked: Answer())
        store = engine.store
        store.save_registry(links=[(a_link(f"link-{n}", f"http://big.example/{n}"), None) for n in range(8)])
        run = store.create_run(a_run())
        dying = Interrupted(store, before_call=crashed_at, act=stop)
        try:
            dispatch_run(dying, run, now=MONDAY, allowances={"big.example": 3})  # type: ignore[arg-type]
            crashes = False
        except Stop:
            dispatch_run(store, run, now=MONDAY, allowances={"big.example": then})
        jobs, chains = list(store.jobs(run.run_id)), list(store.chains(run.run_id))
        assert len(jobs) == 8
        assert {c.host: c.total for c in chains} == {c.host: sum(job.host == c.host for job in jobs) for c in chains}
        engine.allowances = {"big.example": then}
        closed = engine.observe()
        assert closed.totals is not None
        assert closed.totals.by_end == {"reachable": 8}
        visits = engine.internet.visits("big.example")
        assert max(within_rest(visits, v.started_at) for v in visits) <= then
        store.close()
        crashed_at += 1
    assert crashed_at > 8


def test_slots_have_the_hosts_name_and_a_number() -> None:
    assert slots_of("docs.example.com", 1) == ("docs.example.com",)
    assert slots_of("docs.example.com", 3) == ("docs.example.com", "docs.example.com#2", "docs.example.com#3")
    assert {host_of(slot) for slot in slots_of("docs.example.com", 3)} == {"docs.example.com"}
    assert slot_for("guide", "docs.example.com", 1) == "docs.example.com"


def test_chains_share_slots_where_less_is_agreed_now() -> None:
    chains = slots_of("h.example", 4)
    assert [leased_slot(chain, {"h.example": 3}) for chain in chains] == [*slots_of("h.example", 3), "h.example"]
    assert {leased_slot(chain, {}) for chain in chains} == {"h.example"}


def test_links_spread_evenly_enough_over_slots() -> None:
    slots = [slot_for(f"link-{n:05d}", "h", 7) for n in range(50_000)]
    assert max(slots.count(slot) for slot in set(slots)) < 1.03 * 50_000 / 7
