"""What a week over SQS asks of DynamoDB and SQS for each check: units that DynamoDB reports, requests that are sent.

python -m linkwatch_pipeline_tests.cloud.week_units       # the line of docs/aws.md; some ten seconds

Real checks of pages on loopback, by the use cases of the functions `dispatch` and `check`: 60 links on 15 hosts.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.adapters.store.dynamodb import CLIENT
from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline.use_cases.work_on_queue import begin_on_queue, check_messages, tick_on_queue
from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack
from linkwatch_pipeline_tests.cloud.shared_worker import make_shared
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.cloud.write_units import WRITES
from linkwatch_pipeline_tests.world import World

READS = ("BatchGetItem", "GetItem", "Query")
HOSTS, LINKS_ON_A_HOST = 15, 4


def counting(client: Any, service: str, seen: Counter[str]) -> Any:
    """The client, counting its calls by name and the units that DynamoDB says they consumed."""

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: dict[str, Any], model: Any, **_: Any) -> None:
        seen[model.name] += 1
        consumed = parsed.get("ConsumedCapacity", [])
        for one in consumed if isinstance(consumed, list) else [consumed]:
            seen["write units" if model.name in WRITES else "read units"] += one["CapacityUnits"]

    for name in (*WRITES, *READS) if service == "dynamodb" else ():
        client.meta.events.register(f"before-parameter-build.dynamodb.{name}", ask)
    client.meta.events.register(f"after-call.{service}", note)
    return client


def units_of_a_week(cloud: Cloud, world: World, home: Path) -> tuple[Counter[str], int]:
    """What was counted from dispatch to the close of the run, and how many checks there were."""
    shared, seen = make_shared(cloud), Counter[str]()
    clock = SystemClock()
    with build_app(home, env=shared.env, policy=world.policy, resolver=world.resolver) as app:
        client = counting(cloud.client("dynamodb", config=CLIENT), "dynamodb", seen)
        sqs = counting(cloud.client("sqs"), "sqs", seen)
        queue = SqsQueue(sqs, queue_url=shared.queue_url, dead_letter_url=shared.dead_letter_url, wait=timedelta(0))
        app.__dict__["store"] = store_on(client, shared.table, clock=clock, page_items=None)
        _register(app, world)
        seen.clear()
        asyncio.run(_work(app, queue, world))
        return seen, len(world.log.hits)


async def _work(app: App, queue: SqsQueue, world: World) -> None:
    begun = begin_on_queue(app.store, queue, week_start(app.clock.now()), pace=app.pace, now=app.clock.now())
    async with app.checking(worker="worker") as parts:
        while len(world.log.hits) < begun.dispatched:
            for receipt in queue.receive(limit=10):
                if await check_messages(parts, queue, [receipt.job]) == [True]:
                    queue.acknowledge(receipt)
        await tick_on_queue(parts, queue, pace=app.pace)


def _register(app: App, world: World) -> None:
    for host, site in world.sites.items():
        for page in site.pages:
            register_link(
                app.store,
                link_id=f"{host.split('.')[0]}-{page.strip('/')}",
                url=f"http://{host}{page}",
                owner="docs",
                notify="docs@example.com",
                now=week_start(app.clock.now()) - timedelta(days=1),
            )


def main() -> None:
    pages = {f"/{n}": 404 if n == 0 else 200 for n in range(LINKS_ON_A_HOST)}
    sites = {f"h{n}.example": pages if n == 0 else dict.fromkeys(pages, 200) for n in range(HOSTS)}
    with tempfile.TemporaryDirectory() as folder, World(sites).in_thread() as world:
        (Path(folder) / "cloud").mkdir()
        with started_ministack(Path(folder) / "cloud") as cloud:
            seen, checks = units_of_a_week(cloud, world, Path(folder) / "home")
    for name, count in sorted(seen.items()):
        print(f"| {name} | {count / checks:.2f} |")


if __name__ == "__main__":
    main()
