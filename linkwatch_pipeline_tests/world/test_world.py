from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline_tests.world import Answer, Hit, Request, RequestLog, Site, World, WorldProcess, visits, weekly
from linkwatch_pipeline_tests.world.hostile import raw
from linkwatch_pipeline_tests.world.scripts import Script

DOCS = "docs.example.com"
PATIENCE = timedelta(minutes=1)


class OpenGate:
    async def enter(self, host: str) -> None:
        return

    async def leave(self, departure: Departure) -> None:
        return


def fetcher_of(world: World | WorldProcess) -> GuardedFetcher:
    return GuardedFetcher(
        world.policy,
        clock=SystemClock(),
        user_agent="test",
        resolver=world.resolver,
        ssl_context=world.ssl_context,
        deadline=PATIENCE,
    )


async def fetch(world: World | WorldProcess, url: str) -> FetchResult:
    return await fetcher_of(world).fetch(url, OpenGate())


async def statuses(world: World, url: str, count: int) -> list[int | None]:
    return [(await fetch(world, url)).status for _ in range(count)]


def test_a_page_follows_its_weekly_script() -> None:
    async def story() -> list[int | None]:
        async with World({DOCS: {"/guide": weekly(200, 404, 404, 200)}}) as world:
            seen = []
            for week in (0, 1, 2, 3, 9):
                world.week = week
                seen += await statuses(world, f"http://{DOCS}/guide", 2)
            return seen

    assert asyncio.run(story()) == [200, 200, 404, 404, 404, 404, 200, 200, 200, 200]


def test_a_page_may_let_wait_until_a_week() -> None:
    async def story() -> tuple[list[str | None], int | None]:
        async with World({DOCS: {"/guide": Answer(from_week=2), "/now": 200}}) as world:
            waiting = asyncio.create_task(fetch(world, f"http://{DOCS}/guide"))
            _, impatient = await asyncio.open_connection(*world.map.hosts[DOCS][0])
            impatient.write(b"GET /guide?gone HTTP/1.1\r\n\r\n")
            impatient.close()
            while world.log.hits == []:  # that somebody went is seen a moment later
                await asyncio.sleep(0.01)
            assert (await fetch(world, f"http://{DOCS}/now")).status == 200
            so_far = [hit.target for hit in world.log.hits]
            world.week = 2
            return so_far, (await waiting).status

    assert asyncio.run(story()) == (["/guide?gone", "/now"], 200)


def test_a_page_follows_its_script_of_visits_whatever_the_week() -> None:
    async def story() -> tuple[list[int | None], list[int | None]]:
        pages = {"/a": visits(Answer(429, headers={"Retry-After": "2"}), 200), "/b": visits(200, 500)}
        async with World({DOCS: pages}) as world:
            return await statuses(world, f"http://{DOCS}/a", 3), await statuses(world, f"https://{DOCS}/b?x=1", 2)

    assert asyncio.run(story()) == ([429, 200, 200], [200, 500])


def test_hosts_have_addresses_and_certificates_of_their_own() -> None:
    async def story() -> None:
        async with World({f"h{i}.example.com": Site(otherwise=200) for i in range(300)}) as world:
            addresses = [address for pair in world.map.hosts.values() for address in pair]
            assert len({ip for ip, _ in addresses}) == 300
            assert len(set(addresses)) == 600
            assert all(ip.startswith("127.") and port >= 1024 for ip, port in addresses)
            for name in ("h0.example.com", "h299.example.com"):
                assert (await fetch(world, f"https://{name}/")).status == 200

    asyncio.run(story())


def test_a_host_may_be_down_for_good_or_for_a_week() -> None:
    async def story() -> list[Reason | None]:
        async with World({"a.example.com": Site(down=True), DOCS: Site(otherwise=200, down=[1])}) as world:
            seen = [(await fetch(world, "http://a.example.com/")).failure]
            for week in (0, 1, 2):
                world.week = week
                seen.append((await fetch(world, f"http://{DOCS}/")).failure)
            return seen

    assert asyncio.run(story()) == [Reason.CONNECTION_REFUSED, None, Reason.CONNECTION_RESET, None]


def test_the_log_tells_who_was_visited_when_and_how_many_were_there() -> None:
    async def story() -> RequestLog:
        all_there = asyncio.Barrier(3)

        async def meet(request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await all_there.wait()
            await raw(Answer().to_bytes())(request, reader, writer)

        pages: dict[str, Script] = {"/first": Answer(delay=0.1), "/together": meet}
        sites = {DOCS: pages, "b.example.com": pages}
        async with World(sites, week=2) as world:
            await fetch(world, f"https://{DOCS}/first?x=1")
            await asyncio.gather(*(fetch(world, f"http://{host}/together") for host in (DOCS, DOCS, "b.example.com")))
            return world.log

    log = asyncio.run(story())
    first, second, third = log.of(DOCS)
    assert (first.target, first.scheme, first.week, first.together) == ("/first?x=1", "https", 2, 1)
    assert first.headers["user-agent"] == "test"
    assert first.ended - first.started >= 0.1
    assert datetime.fromisoformat(first.at).utcoffset() == timedelta(0)
    assert log.overlaps(DOCS) == [(second, third)]
    assert log.gaps(DOCS)[0] >= 0 > log.gaps(DOCS)[1]
    assert not log.overlaps("b.example.com")
    assert not log.gaps("b.example.com")
    assert log.most_together() == 3
    assert log.hosts() == ["b.example.com", DOCS]


def test_gaps_count_from_the_end_of_one_hit_to_the_start_of_the_next() -> None:
    def hit(started: float, ended: float) -> Hit:
        return Hit("a", "", "http", "/", {}, 0, "", started, ended, 1, 1)

    log = RequestLog([hit(5.0, 6.0), hit(1.0, 3.5), hit(5.5, 7.0)])
    assert log.gaps("a") == [1.5, -0.5]
    assert log.overlaps("a") == [(hit(5.0, 6.0), hit(5.5, 7.0))]
    assert RequestLog.read([hit(1, 2).to_json() + "\n", '{"host": "half a li']).hits == [hit(1, 2)]


def test_code_without_a_loop_has_a_world_in_a_thread() -> None:
    with World({DOCS: {"/guide": weekly(200, 404)}}).in_thread() as world:
        assert asyncio.run(fetch(world, f"http://{DOCS}/guide")).status == 200
        world.week = 1
        assert asyncio.run(fetch(world, f"https://{DOCS}/guide")).status == 404
        address = world.map.hosts[DOCS][0]
    assert world.log.targets(DOCS) == ["/guide", "/guide"]

    async def still_there() -> bool:
        try:
            _, writer = await asyncio.open_connection(*address)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    assert not asyncio.run(still_there())


def test_a_world_that_cannot_open_says_why() -> None:
    with pytest.raises(ValueError, match="no kind of certificate"), World({DOCS: Site(certificate="odd")}).in_thread():
        pass


def test_a_world_of_its_own_process_follows_week_and_script_and_tells_its_log(tmp_path: Path) -> None:
    site = {
        "pages": {
            "/guide": {"weeks": [200, {"status": 404, "body": "gone"}]},
            "/busy": {"visits": [{"status": 429, "headers": {"Retry-After": "9"}}, 200]},
            "/odd": {"hostile": "redirect_javascript"},
        },
        "otherwise": 410,
    }
    with WorldProcess({DOCS: site, "down.example.com": {"down": True}}, tmp_path) as world:
        assert asyncio.run(fetch(world, f"https://{DOCS}/guide")).status == 200
        world.week = 1
        gone = asyncio.run(fetch(world, f"http://{DOCS}/guide"))
        assert (gone.status, gone.body) == (404, b"gone")
        assert asyncio.run(fetch(world, f"http://{DOCS}/busy")).retry_after == "9"
        assert asyncio.run(fetch(world, f"http://{DOCS}/odd")).failure is Reason.BLOCKED_SCHEME
        assert asyncio.run(fetch(world, f"http://{DOCS}/other")).status == 410
        assert asyncio.run(fetch(world, "http://down.example.com/")).failure is Reason.CONNECTION_REFUSED
    assert world.log.targets(DOCS) == ["/guide", "/guide", "/busy", "/odd", "/other"]
    assert [hit.week for hit in world.log.of(DOCS)] == [0, 1, 1, 1, 1]


VISITOR = """
import asyncio, sys
from pathlib import Path
from linkwatch_pipeline_tests.world import AddressMap
ip, port = AddressMap.from_json(Path(sys.argv[1]).read_text()).hosts["docs.example.com"][0]
async def visit():
    reader, writer = await asyncio.open_connection(ip, port)
    writer.write(b"GET /slow HTTP/1.1\\r\\nHost: docs.example.com\\r\\n\\r\\n")
    print("asked", flush=True)
    await reader.read()
asyncio.run(visit())
"""


def test_killing_a_visitor_leaves_the_world_alive_and_its_log_complete(tmp_path: Path) -> None:
    with WorldProcess({DOCS: {"pages": {"/slow": {"hostile": "silent"}}, "otherwise": 200}}, tmp_path) as world:
        visitor = subprocess.Popen(
            [sys.executable, "-c", VISITOR, str(world.map_file)], stdout=subprocess.PIPE, text=True
        )
        with visitor:
            assert visitor.stdout is not None
            assert visitor.stdout.readline() == "asked\n"
            os.kill(visitor.pid, signal.SIGKILL)
        assert asyncio.run(fetch(world, f"http://{DOCS}/")).status == 200
    assert world.log.targets(DOCS) == ["/slow", "/"]
