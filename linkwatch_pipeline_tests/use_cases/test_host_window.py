"""A process holds the hosts that come next, and no others: in virtual time, with a window of a few hosts."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from pathlib import Path
from zlib import crc32

from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus, Run
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline_tests.bench.memory import quiet_engine, register
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer
from linkwatch_pipeline_tests.virtual_clock import run_virtual

SECOND = timedelta(seconds=1)
FEW = 16


def urls() -> list[str]:
    """60 hosts with 1 to 12 links."""
    return [f"http://h{host:02d}.example/{n}" for host in range(60) for n in range(1 + (host * 7) % 12)]


def troubled(url: str, asked: int) -> Answer:
    """Pages that are gone, pages that moved to another host, slow ones, and hosts that ask for a pause once."""
    host, page = int(url[8:10]), int(url.rpartition("/")[2])
    if host % 10 == 3 and page == 0 and asked == 0:
        return Answer(status=429, retry_after="90")
    if page == 5:
        return Answer(status=302, location=f"http://h{(host + 1) % 60:02d}.example/99")
    return Answer(status=404 if page == 2 else 200, takes=timedelta(seconds=1 + host % 3))


def week(folder: Path, most_held: int) -> tuple[Engine, Run]:
    engine = Engine(folder, troubled, concurrency=4)
    engine.most_held = most_held
    with engine.store.grouped():
        engine.register(urls())
        run = engine.observe()
    engine.store.close()
    return engine, run


def test_a_week_ends_as_if_all_hosts_were_held_and_as_politely(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    few, run = week(tmp_path / "few", FEW)
    (tmp_path / "all").mkdir()
    everything, as_ever = week(tmp_path / "all", 2000)
    assert run.totals == as_ever.totals
    assert few.internet.hosts() == everything.internet.hosts()
    for host in few.internet.hosts():
        rest = few.internet.shortest_rest(host)
        assert rest is None or rest >= SECOND


def test_a_week_ends_as_soon_as_if_all_hosts_were_held(tmp_path: Path) -> None:
    def varied(url: str, asked: int) -> Answer:
        return Answer(takes=timedelta(seconds=0.5 + crc32(url.encode()) % 60 / 20))

    took = []
    for most_held in (FEW, 2000):
        folder = tmp_path / str(most_held)
        folder.mkdir()
        engine = Engine(folder, varied, concurrency=4)
        engine.most_held = most_held
        with engine.store.grouped():
            engine.register(urls())
            engine.observe()
        engine.store.close()
        took.append(engine.clock.now() - MONDAY)
    assert took[0] / took[1] <= 1.02


def test_hosts_that_all_ask_for_a_pause_are_visited_when_it_is_over(tmp_path: Path) -> None:
    engine = Engine(
        tmp_path,
        lambda url, asked: Answer(status=429, retry_after="300") if url.endswith("/0") else Answer(),
        concurrency=4,
    )
    engine.most_held = FEW
    with engine.store.grouped():
        engine.register(f"http://h{host:02d}.example/{n}" for host in range(40) for n in range(2))
        run = engine.observe()
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 40, "throttled": 40}
    seconds = [
        (later.started_at - earlier.ended_at).total_seconds()
        for earlier, later in (engine.internet.visits(host) for host in engine.internet.hosts())
    ]
    assert min(seconds) >= 300
    assert max(seconds) < 305
    engine.store.close()


def test_a_host_that_is_done_elsewhere_is_not_waited_for(tmp_path: Path) -> None:
    engine = Engine(tmp_path, lambda url, asked: Answer(takes=30 * SECOND), concurrency=1)
    engine.most_held = 2
    engine.register(f"http://h{host}.example/" for host in range(6))
    run = begin_week(engine.store, MONDAY, now=MONDAY)

    async def work_beside_somebody_who_cancels() -> None:
        working = asyncio.create_task(engine.work(run))
        await engine.clock.sleep(SECOND)
        for job in list(engine.store.jobs(run.run_id))[3:]:
            engine.store.end_job(job, status=JobStatus.CANCELLED, reason=Reason.RETIRED)
        await working

    run_virtual(work_beside_somebody_who_cancels(), engine.clock)
    assert engine.clock.now() - MONDAY < timedelta(minutes=10)
    engine.store.close()


def test_no_head_is_taken_for_lost_while_it_waits_for_its_turn(tmp_path: Path) -> None:
    engine = quiet_engine(tmp_path, 1)  # a visit in 2 s
    engine.most_held = 100
    with engine.store.grouped():
        register(engine, 800, 400, busiest=2)
        run = begin_week(engine.store, MONDAY, now=MONDAY)

        async def work() -> None:
            working = asyncio.create_task(engine.work(run))
            await engine.clock.sleep(timedelta(minutes=12))
            working.cancel()
            await asyncio.wait([working])

        run_virtual(work(), engine.clock)
        assert sum(chain.total - chain.remaining for chain in engine.store.chains(run.run_id)) > 350
        assert {chain.resends for chain in engine.store.chains(run.run_id)} == {0}
    engine.store.close()


def most_things(folder: Path, *, links: int, hosts: int, seconds: int) -> int:
    """The most that working so long holds: our records, and entries of lists and mappings. Ten visits a second."""
    folder.mkdir()
    gc.collect()
    gc.freeze()  # what other tests of this process left is not counted, which takes long, either
    engine = quiet_engine(folder, 20)
    engine.most_held = 50
    with engine.store.grouped():
        register(engine, links, hosts, busiest=links // hosts)
        run = begin_week(engine.store, MONDAY, now=MONDAY)
        before = things()

        async def work() -> int:
            working, counts = asyncio.create_task(engine.work(run)), []
            for _ in range(seconds // 10):
                await engine.clock.sleep(10 * SECOND)
                counts.append(things() - before)
            working.cancel()
            await asyncio.wait([working])
            return max(counts)

        most = run_virtual(work(), engine.clock)
    engine.store.close()
    gc.unfreeze()
    return most


def things() -> int:
    gc.collect()
    found = gc.get_objects()
    records = sum(str(type(each).__module__).startswith("linkwatch_pipeline.") for each in found)
    return records + sum(len(each) for each in found if type(each) in (list, dict, set, frozenset))


def test_memory_grows_neither_with_the_hosts_nor_with_the_links_that_were_checked(tmp_path: Path) -> None:
    most = most_things(tmp_path / "base", links=400, hosts=200, seconds=20)
    assert most_things(tmp_path / "hosts", links=1200, hosts=600, seconds=20) < 1.2 * most
    assert most_things(tmp_path / "links", links=1200, hosts=200, seconds=100) < 1.2 * most
