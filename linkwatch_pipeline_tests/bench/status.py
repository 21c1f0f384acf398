"""A minute of service status: 1,000 services, a tenth slow (their answer takes 12 s) and a tenth down, over real TLS.

Beside it a monitor of the original's design, one service after the other, on every twentieth of the same services over
plain HTTP, which spares it the handshakes; its time is multiplied by twenty.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx

from linkwatch_pipeline.domain.service_status import CYCLE
from linkwatch_pipeline.settings import load_status_settings
from linkwatch_pipeline.status_bootstrap import StatusApp, build_status_app
from linkwatch_pipeline.use_cases.keep_status import keep_status
from linkwatch_pipeline.use_cases.monitor_services import CycleReport
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.services.postgresql import running_postgres
from linkwatch_pipeline_tests.services.team import USER, Team
from linkwatch_pipeline_tests.services.valkey import running_valkey
from linkwatch_pipeline_tests.world.process import WorldProcess

SERVICES, SAMPLED = 1000, 20
ANSWERS_AFTER, SLOW_ANSWERS_AFTER = 0.2, 12.0
PATIENCE = 10.0


def service_status(folder: Path) -> Iterator[Result]:
    """The cycle, when the last status was in Redis, and the sequential monitor as a ratio."""
    folder.mkdir(parents=True)
    for name in ("world", "valkey"):
        (folder / name).mkdir()
    names = [f"s{number:04d}.example" for number in range(SERVICES)]
    hosts = {name: _host(number) for number, name in enumerate(names)}
    with (
        running_postgres() as postgres,
        running_valkey(folder / "valkey") as valkey,
        WorldProcess(hosts, folder / "world") as world,
    ):
        team = Team(postgres.new_database(), valkey)
        _add_services(team, names)
        report, in_redis, cpu = asyncio.run(_one_minute(_app(team, world), team))
        rows = len(team.rows())
        took = report.took.total_seconds()
        told = f"{report.up} up, {report.down} down; {cpu:.1f} s of CPU; {rows} rows"
        assert (report.up, report.down, rows) == (SERVICES * 8 // 10, SERVICES * 2 // 10, SERVICES)
        yield Result(f"cycle of {SERVICES} services, a tenth slow, a tenth down", took, "s", 60.0, told)
        yield Result("from its beginning to the last status in Redis", in_redis, "s", 60.0, "all 1,000 keys are there")
        sampled = [world.map.hosts[name][0] for name in names[::SAMPLED]]
        one_by_one = _sequential(sampled) * SERVICES / len(sampled)
        times = f"{one_by_one / took:.1f} times as long"
        detail = f"one after the other {one_by_one:.0f} s, from {len(sampled)} of the services: {times}"
        yield Result("our cycle / a sequential one", took / one_by_one, "", 0.1, detail)


def _host(number: int) -> dict[str, object]:
    """Every tenth is slow, every tenth refuses connections; both kinds are spread evenly over every sample."""
    if number // SAMPLED % 10 == 3:
        return {"down": True}
    delay = SLOW_ANSWERS_AFTER if number // SAMPLED % 10 == 7 else ANSWERS_AFTER
    return {"pages": {"/health": {"status": 200, "delay": delay}}}


def _add_services(team: Team, names: Sequence[str]) -> None:
    with team.database() as db:
        db.run("START TRANSACTION")
        for name in names:
            db.run(
                "INSERT INTO services (id, user_id, name, url) VALUES (:id, :user, :name, :url)",
                id=str(uuid4()), user=USER, name=name, url=f"https://{name}/health",
            )  # fmt: skip
        db.run("COMMIT")


def _app(team: Team, world: WorldProcess) -> StatusApp:
    settings = load_status_settings(team.env)
    app = build_status_app(settings, policy=world.policy, user_agent="linkwatch-bench")
    return replace(app, resolver=world.resolver, ssl_context=world.ssl_context)


async def _one_minute(app: StatusApp, team: Team) -> tuple[CycleReport, float, float]:
    """One cycle with the processor beside it; when all was in Redis, and the CPU of this process for it (s)."""
    reports: list[CycleReport] = []
    began, cpu = time.perf_counter(), time.process_time()
    async with app.both_halves() as halves:
        keeping = asyncio.ensure_future(keep_status(halves, reports.append))
        with team.valkey.client() as client:
            while client.dbsize() < SERVICES and time.perf_counter() - began < CYCLE / timedelta(seconds=1):
                await asyncio.sleep(0.05)
            in_redis = time.perf_counter() - began
        while not reports:
            await asyncio.sleep(0.05)
        keeping.cancel()
        await asyncio.wait({keeping})
    spent = time.process_time() - cpu
    app.close()
    return reports[0], in_redis, spent


def _sequential(addresses: Sequence[tuple[str, int]]) -> float:
    """Seconds for one service after the other, as the original asks them."""
    began = time.perf_counter()
    for ip, port in addresses:
        try:
            # A service that is down has its port closed; no connection is kept, as in the original.
            httpx.get(f"http://{ip}:{port}/health", timeout=PATIENCE, trust_env=False)
        except httpx.HTTPError:
            continue
    return time.perf_counter() - began
