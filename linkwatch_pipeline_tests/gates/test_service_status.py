"""Servers restarted in mid-work, everything delivered three times, rubbish in the queue, addresses that are a trap:
nothing is lost, nothing is doubled, nothing is fetched that must not be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count

from linkwatch_pipeline.adapters.status_store.memory_queue import VISIBILITY, MemoryStatusQueue
from linkwatch_pipeline.domain.cycles import CycleStart
from linkwatch_pipeline.domain.service_status import StatusMessage
from linkwatch_pipeline.settings import load_status_settings
from linkwatch_pipeline.status_bootstrap import StatusApp, build_status_app
from linkwatch_pipeline.use_cases.keep_status import StatusHalves
from linkwatch_pipeline.use_cases.monitor_services import CycleReport, LastKnown, Monitor
from linkwatch_pipeline.use_cases.process_statuses import process_rest, process_statuses
from linkwatch_pipeline_tests.services.postgresql import Postgres
from linkwatch_pipeline_tests.services.team import Team
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world.scripts import Answer, Site
from linkwatch_pipeline_tests.world.world import World

GOOD = 12


class RememberingQueue(MemoryStatusQueue):
    """Keeps what it delivered, so that all of it can be delivered again."""

    def __init__(self, clock: VirtualClock) -> None:
        numbers = count(1)
        super().__init__(clock, new_id=lambda: f"gate-{next(numbers)}")
        self.delivered: list[StatusMessage] = []

    def receive(self) -> list[StatusMessage]:
        received = super().receive()
        self.delivered += received
        return received


@asynccontextmanager
async def trap() -> AsyncIterator[tuple[int, Callable[[], int]]]:
    """An internal service that nobody may reach: its port, and how many came."""
    visitors: list[object] = []

    def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], lambda: len(visitors)


def app_of(team: Team, world: World) -> StatusApp:
    app = build_status_app(load_status_settings(team.env), policy=world.policy, user_agent="linkwatch-test")
    return replace(app, resolver=world.resolver, ssl_context=world.ssl_context)


async def play(team: Team, postgres: Postgres) -> tuple[dict[str, str], list[CycleReport], int, int]:
    """Three cycles among disasters: the services by name, the reports, dead letters, and visitors of the trap."""
    sites = {f"s{number}.example": Site({"/health": 200}) for number in range(GOOD)}
    sites["down.example"] = Site(down=True)
    async with trap() as (port, visitors):
        sites["leads-inside.example"] = Site({"/health": Answer.redirect(f"http://127.0.0.1:{port}/secret")})
        async with World(sites) as world:
            services = {host: team.add_service(f"https://{host}/health", name=host) for host in sites}
            services["inside"] = team.add_service(f"http://127.0.0.1:{port}/secret", name="inside")
            app, clock = app_of(team, world), VirtualClock()
            queue = app.__dict__["memory_queue"] = RememberingQueue(clock)
            async with app.both_halves() as halves:
                reports = await _three_cycles(halves, team, postgres, queue, clock)
                for _ in range(2):
                    process_statuses(queue.delivered, cache=app.cache, history=app.history)
            app.close()
            return services, reports, len(queue.dead_letters()), visitors()


async def _three_cycles(
    halves: StatusHalves, team: Team, postgres: Postgres, queue: RememberingQueue, clock: VirtualClock
) -> list[CycleReport]:
    last_known, reports = LastKnown(), list[CycleReport]()

    async def cycle() -> None:
        clock.advance(timedelta(seconds=1))
        start = CycleStart(number=len(reports), due=halves.monitor.clock.monotonic())
        reports.append(await Monitor(halves.monitor, last_known).cycle(start))
        await process_rest(halves.processor)

    queue.send_body("{ rubbish")
    await cycle()
    team.valkey.stop()
    await cycle()
    team.valkey.start()
    postgres.stop()
    await cycle()
    postgres.start()
    for _ in range(3):
        clock.advance(VISIBILITY)
        await process_rest(halves.processor)
    return reports


def test_nothing_is_lost_doubled_or_fetched_that_must_not_be(team: Team, postgres: Postgres) -> None:
    services, reports, dead, visitors = asyncio.run(play(team, postgres))
    up = [f"s{number}.example" for number in range(GOOD)]
    expected = {name: "UP" if name in up else "DOWN" for name in services}
    assert [(report.up, report.down, report.from_memory) for report in reports] == [
        (GOOD, 3, False),
        (GOOD, 3, False),
        (GOOD, 3, True),
    ]
    assert {name: team.read_as_the_original(id_)["status"] for name, id_ in services.items()} == expected
    assert {name: [row[1] for row in team.rows(id_)] for name, id_ in services.items()} == {
        name: [status] * 3 for name, status in expected.items()
    }
    assert dead == 1
    assert visitors == 0
