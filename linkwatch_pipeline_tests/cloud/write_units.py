"""What a week of checks costs in DynamoDB's own words: the capacity that it says each call consumed.

python -m linkwatch_pipeline_tests.cloud.write_units       # the lines of docs/performance.md
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from linkwatch_pipeline.adapters.store.dynamodb import CLIENT
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.links import Link, Place
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline_tests.builders import a_link, a_run, after, an_observation
from linkwatch_pipeline_tests.cloud.ministack import started_ministack
from linkwatch_pipeline_tests.cloud.tables import make_table, store_on

WRITES = ("BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem")
CHANGED_EVERY = 50  # one link in so many changes its state each week (SPEC 3: 2 %)


@contextmanager
def metered(client: Any) -> Iterator[list[float]]:
    """Lets DynamoDB say what each write of the client consumes; the list fills."""
    units: list[float] = []

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: dict[str, Any], **_: Any) -> None:
        consumed = parsed.get("ConsumedCapacity", [])
        units.extend(one["CapacityUnits"] for one in (consumed if isinstance(consumed, list) else [consumed]))

    hooks: list[tuple[str, Any]] = [(f"before-parameter-build.dynamodb.{name}", ask) for name in WRITES]
    hooks += [(f"after-call.dynamodb.{name}", note) for name in WRITES]
    for event, hook in hooks:
        client.meta.events.register(event, hook)
    yield units
    for event, hook in hooks:
        client.meta.events.unregister(event, hook)


def write_units_per_check(client: Any, store: Store, *, links: int, hosts: int, places: int = 2) -> float:
    """The mean over the second week of a registry as a handbook has it, from dispatch to the last record.

    Args: places: where each link stands in the handbook.
    """
    store.save_registry(links=[(_a_handbooks_link(n, hosts, places), None) for n in range(links)])
    _observe(store, week=0, links=links)
    with metered(client) as units:
        _observe(store, week=1, links=links)
    return sum(units) / links


def _a_handbooks_link(number: int, hosts: int, how_many: int) -> Link:
    host = f"handbook-{number % hosts:03}.example.gov"
    path = f"about-us/code-of-conduct/how-we-work-together-number-{number:04}/"
    places = tuple(
        Place(file=f"pages/general-information-and-resources/page-{number + n}.md", line=7) for n in range(how_many)
    )
    return a_link(f"{host}-{number:04}", f"https://{host}/{path}", places=places, marker="Our values")


def _observe(store: Store, *, week: int, links: int) -> None:
    monday = after(days=7 * week)
    dispatch_run(store, store.create_run(a_run(monday)), now=monday)
    known = {link.id: link for link in store.links()}
    for number, job in enumerate(list(store.jobs(a_run(monday).run_id))):
        at = monday + timedelta(seconds=number * 5)
        store.acquire_host(job.host, token=job.job_id, job_id=job.job_id, now=at, skew=timedelta(0))
        departure = Departure(at=at, answered=True)
        store.release_host(job.host, token=job.job_id, departure=departure, cooldown=timedelta(0), chance=Random(1))
        status = 404 if week and number % CHANGED_EVERY == CHANGED_EVERY - 1 else 200
        look = an_observation(
            known[job.link_id],
            status,
            job=job,
            marker_found=True,
            content_type="text/html; charset=utf-8",
            tls_not_after=after(days=60),
        )
        store.record(look, default_confirm=1, now=at)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, started_ministack(Path(folder)) as cloud:
        client = cloud.client("dynamodb", config=CLIENT)
        for links, hosts, places in (
            (60, 15, 2),
            (600, 100, 2),
            (60, 60, 2),
            (60, 15, 1),
            (60, 15, 20),
            (60, 15, 6000),
        ):
            store = store_on(client, make_table(cloud))
            mean = write_units_per_check(client, store, links=links, hosts=hosts, places=places)
            print(f"| {links:,} links on {hosts:,} hosts, in {places:,} places each | {mean:.2f} |")


if __name__ == "__main__":
    main()
