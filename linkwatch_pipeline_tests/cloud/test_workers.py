"""Twenty workers, as `linkwatch worker` makes them, on one run over one queue, while DynamoDB cancels some writes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event

from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.bootstrap import App, new_worker
from linkwatch_pipeline.domain.runs import JobStatus, count_chains
from linkwatch_pipeline.ports import Queue
from linkwatch_pipeline.use_cases.work_on_queue import work_on_queue
from linkwatch_pipeline_tests.cloud.calls import Call, Fault
from linkwatch_pipeline_tests.cloud.fault_proxy import fault_proxy
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.patient_clients import patient_clients
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.cloud.test_recovery import MONDAY, RUN_ID, dispatch, go_to, register
from linkwatch_pipeline_tests.entrypoints.functions import functions_on
from linkwatch_pipeline_tests.world import WorldProcess

WORKERS = HOSTS = 20
EVERY = 6  # one transaction in so many is cancelled, as if another one had been at its items
SITES = {f"h{n:02}.example.com": {"pages": {"/gone": 404, "/ok": 200}} for n in range(HOSTS)}
URLS = [f"http://{host}{page}" for host in SITES for page in ("/gone", "/ok")]
POLL = timedelta(seconds=1)


def some_are_cancelled(call: Call) -> Fault | None:
    return Fault.CONFLICT if call.operation == "TransactWriteItems" and call.number % EVERY == 0 else None


async def be_a_worker(app: App, queue: Queue, over: Event) -> int:
    stop = asyncio.Event()

    async def listen() -> None:
        while not over.is_set():
            await app.clock.sleep(timedelta(milliseconds=100))
        stop.set()

    async with app.checking(worker=new_worker("worker")) as parts:
        _, acknowledged = await asyncio.gather(listen(), work_on_queue(parts, queue, concurrency=1, stop=stop))
    return acknowledged


def test_twenty_workers_on_one_run_lose_and_double_nothing(ministack: Cloud, tmp_path: Path) -> None:
    with (
        patient_clients(),
        WorldProcess(SITES, tmp_path) as world,
        fault_proxy(ministack) as proxy,
        functions_on(proxy.cloud, world) as functions,
    ):
        go_to(functions, MONDAY)
        store = store_on(ministack.client("dynamodb"), functions.table, clock=functions.clock)
        register(store, *URLS)
        app, over = functions.app(), Event()
        app.store  # noqa: B018  # opened on one thread
        dispatch(functions)
        work, dead = functions.queue_url, functions.dead_letter_url
        queue = SqsQueue(functions.sqs, queue_url=work, dead_letter_url=dead, wait=POLL)
        heads = [job.message for chain in store.chains(RUN_ID) if (job := store.get_job(RUN_ID, str(chain.head)))]
        queue.send(heads)  # each a second time: two workers are at every host
        proxy.hold = 0.01
        proxy.begin(some_are_cancelled)
        with ThreadPoolExecutor(WORKERS) as pool:
            working = [pool.submit(asyncio.run, be_a_worker(app, queue, over)) for _ in range(WORKERS)]
            while count_chains(store.chains(RUN_ID)).pending and not any(each.done() for each in working):
                over.wait(0.3)
            over.set()
            acknowledged = [each.result() for each in working]
        forced = [call for call in proxy.calls if some_are_cancelled(call)]
        assert forced
        assert [job.status for job in store.jobs(RUN_ID)] == [JobStatus.DONE] * len(URLS)
        assert dict(count_chains(store.chains(RUN_ID)).by_end) == {"broken": HOSTS, "reachable": HOSTS}
        assert len(list(store.observations())) == len(URLS) <= sum(acknowledged)
        assert len(list(store.transitions())) == len(list(store.notices())) == HOSTS
        assert all(hit.together == 1 for hit in world.log.hits)
        assert functions.depth(dead) == 0
        store.close()
