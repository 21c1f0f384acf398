"""Hundreds of servers that never end or send without end: no socket, task or megabyte is left behind.

The servers run in a process of their own, so that what is counted here is the fetcher's alone.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle, islice
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline_tests.world.process import WorldProcess

HOST = "hostile.example.com"
# endless, trickling, header-flooding, zip bombs, never closing
NAMES = [
    *("infinite_body", "chunked_endless", "redirect_infinite_body", "chunked_trailer_flood", "chunked_tiny"),
    *("trickle_body", "trickle_headers", "s404_trickle", "slow_1xx"),
    *("header_bomb", "header_line_endless", "flood_1xx"),
    *("gzip_bomb", "br_bomb", "gzip_nested"),
    *("silent", "chunked_no_end", "body_64k_held", "cl_huge"),
]
MEBIBYTE = 1024 * 1024
DEADLINE = timedelta(seconds=0.3)
AT_ONCE = 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="counts as Linux shows it")


class OpenGate:
    """Lets everybody in; what must hold is that everybody leaves."""

    inside = 0

    async def enter(self, host: str) -> None:
        self.inside += 1

    async def leave(self, departure: Departure) -> None:
        self.inside -= 1


@dataclass(frozen=True)
class Held:
    """What this process holds: open files, tasks, bytes that Python allocated, bytes of the process."""

    files: int
    tasks: int
    allocated: int
    resident: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            files=len(os.listdir("/proc/self/fd")),
            tasks=len(asyncio.all_tasks()),
            allocated=tracemalloc.get_traced_memory()[0],
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorldProcess]:
    pages = {f"/{name}": {"hostile": name} for name in NAMES}
    with WorldProcess({HOST: {"pages": pages}}, tmp_path_factory.mktemp("world")) as opened:
        yield opened


async def endure(world: WorldProcess, checks: int) -> tuple[Held, Held, Counter[Reason | None]]:
    """Visit the servers in turn, TLS every fourth time; what was held before (warmed up) and afterwards."""
    fetcher = GuardedFetcher(
        world.policy,
        clock=SystemClock(),
        user_agent="linkwatch-test/1",
        resolver=world.resolver,
        ssl_context=world.ssl_context,
        deadline=DEADLINE,
    )
    gate, slots, failures = OpenGate(), asyncio.Semaphore(AT_ONCE), Counter[Reason | None]()

    async def visit(number: int, name: str) -> None:
        async with slots:
            result = await fetcher.fetch(f"{'https' if number % 4 == 0 else 'http'}://{HOST}/{name}", gate)
            failures[result.failure] += 1

    async def visit_all(count: int) -> None:
        await asyncio.gather(*(visit(number, name) for number, name in enumerate(islice(cycle(NAMES), count))))

    await visit_all(len(NAMES))
    failures.clear()
    before = Held.now()
    await visit_all(checks)
    await asyncio.sleep(0)
    after = Held.now()
    assert gate.inside == 0
    fetcher._deadline = 60.0  # what follows ends by itself, soon or late
    assert (await fetcher.fetch(f"http://{HOST}/gzip_nested", gate)).status == 200  # the next check is unharmed
    await fetcher.aclose()
    return before, after, failures


def assert_nothing_is_left(world: WorldProcess, checks: int) -> None:
    tracemalloc.start()
    try:
        before, after, failures = asyncio.run(endure(world, checks))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert failures.total() == checks
    assert Reason.INTERNAL not in failures
    assert after.files <= before.files
    assert after.tasks == before.tasks == 1
    assert after.allocated - before.allocated < MEBIBYTE
    assert after.resident - before.resident < 16 * MEBIBYTE  # an allocator keeps some of what it once needed
    assert peak < AT_ONCE * MEBIBYTE


def test_two_of_each_hostile_server_leave_nothing_behind(world: WorldProcess) -> None:
    assert_nothing_is_left(world, 2 * len(NAMES))


@pytest.mark.campaign
def test_a_thousand_hostile_servers_leave_nothing_behind(world: WorldProcess) -> None:
    assert_nothing_is_left(world, 1_000)
