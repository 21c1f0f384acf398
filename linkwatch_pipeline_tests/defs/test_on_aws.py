"""The weekly job in the profile aws: it dispatches to SQS and follows, while a worker elsewhere does the checks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.definitions import defs
from linkwatch_pipeline.domain.runs import Run, RunState
from linkwatch_pipeline.domain.timestamps import week_key, week_start
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline.use_cases.work_on_queue import begin_on_queue, work_on_queue
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.shared_worker import Shared, make_shared
from linkwatch_pipeline_tests.defs.watched import checks, materialized, metadata
from linkwatch_pipeline_tests.world import World

SITES = {
    "alpha.example": {"/one": 200, "/two": 404},
    "beta.example": {"/one": 500, "/two": 200},
    "gamma.example": {"/one": 200},
}
WEEK = week_start(SystemClock().now())
CLOCK = StoryClock(SystemClock(), WEEK + timedelta(minutes=10))  # of all machines; no week begins meanwhile
ONE_BATCH_A_HOST = {"LINKWATCH_BATCHES": "3"}


@pytest.fixture
def world() -> Iterator[World]:
    with World(SITES).in_thread() as world:
        yield world


@pytest.fixture
def shared(ministack: Cloud, monkeypatch: pytest.MonkeyPatch, world: World, tmp_path: Path) -> Shared:
    """A table and queues that this process finds, every page of the world registered."""
    made = make_shared(ministack)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    with opened(made, world, tmp_path / "registrar") as app:
        for host, site in world.sites.items():
            for page in site.pages:
                register_link(
                    app.store,
                    link_id=f"{host.split('.')[0]}-{page.strip('/')}",
                    url=f"http://{host}{page}",
                    owner="docs-team",
                    notify="docs-team@example.com",
                    now=WEEK - timedelta(days=30),
                )
    return made


def opened(shared: Shared, world: World, home: Path) -> App:
    """A machine of its own: its home, its clients."""
    return build_app(
        home,
        env={**shared.env, **ONE_BATCH_A_HOST},
        clock=CLOCK,
        policy=world.policy,
        resolver=world.resolver,
        ssl_context=world.ssl_context,
    )


@contextmanager
def worker_in_thread(shared: Shared, world: World, home: Path) -> Iterator[None]:
    """What `linkwatch worker` does, in a world: from another home, with clients of its own, until the block ends."""
    loop_and_stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    started = threading.Event()

    async def work() -> None:
        stop = asyncio.Event()
        loop_and_stop.append((asyncio.get_running_loop(), stop))
        started.set()
        queue = SqsQueue.connect(
            queue_url=shared.queue_url, dead_letter_url=shared.dead_letter_url, wait=timedelta(seconds=1)
        )
        with opened(shared, world, home) as app:
            async with app.checking(worker="worker-elsewhere") as parts:
                await work_on_queue(parts, queue, concurrency=4, stop=stop)

    thread = threading.Thread(target=lambda: asyncio.run(work()), name="worker", daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield
    finally:
        [(loop, stop)] = loop_and_stop
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=60)


def run_week(app: App, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def("weekly_check").execute_in_process(
        partition_key=week_key(WEEK),
        instance=instance,
        resources={"app": app},
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )


def lines(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> list[str]:
    return [entry.user_message for entry in instance.all_logs(result.run_id)]


def test_it_dispatches_to_the_queue_and_follows_the_run_to_its_end(
    shared: Shared, world: World, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    with opened(shared, world, tmp_path / "dagster") as app, worker_in_thread(shared, world, tmp_path / "worker"):
        result = run_week(app, instance)
        assert result.success
        [run] = app.store.runs()
        assert run.state is RunState.CLOSED
        workers = {observation.job_id for observation in app.store.observations()}
    assert materialized(result) >= {"link_registry", "observation_batches", "state_transitions", "outbox"}
    seen = metadata(result, "observation_batches")
    assert (seen["jobs_reachable"], seen["jobs_broken"], seen["jobs_uncertain"], seen["batches"]) == (3, 1, 1, 3)
    assert {row["host"]: row["jobs"] for row in seen["hosts"]} == {host: len(pages) for host, pages in SITES.items()}
    assert checks(result)["every_job_is_terminal"]
    assert (len(workers), len(world.log.hits)) == (5, 5)
    progress = [line for line in lines(instance, result) if line.startswith(f"{run.run_id}  ")]
    assert progress[0].startswith(f"{run.run_id}  0/5")
    assert any(line.startswith(f"{run.run_id}  5/5  reachable 3, broken 1, uncertain 1") for line in progress)


def test_it_adopts_the_run_of_the_dispatcher_and_two_may_follow_at_once(
    shared: Shared, world: World, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    with opened(shared, world, tmp_path / "dagster") as app:
        begun = _dispatched_elsewhere(app)
        with app.sole_runner(), app.sole_runner() as second:  # nothing is held
            assert second.startswith("follow-")
        with worker_in_thread(shared, world, tmp_path / "worker"):
            other: list[bool] = []
            also = threading.Thread(target=lambda: other.append(_follows(shared, world, tmp_path / "other", begun)))
            also.start()
            result = run_week(app, instance)
            also.join(timeout=60)
        assert (result.success, other) == (True, [True])
        assert [run.run_id for run in app.store.runs()] == [begun.run_id]
        assert len(list(app.store.observations())) == len(world.log.hits) == 5
        again = run_week(app, instance)  # a finished week: nothing is asked, nothing waited for
    assert metadata(again, "observation_batches")["batches"] == 0
    assert len(world.log.hits) == 5


def _dispatched_elsewhere(app: App) -> Run:
    """What the function `dispatch` does for the weekly schedule."""
    return begin_on_queue(app.store, app.shared_queue, WEEK, pace=app.pace, now=app.clock.now())


def _follows(shared: Shared, world: World, home: Path, run: Run) -> bool:
    with opened(shared, world, home) as app:
        app.observe(run, None, worker="follow-other")
        found = app.store.get_run(run.run_id)
        return found is not None and not any(chain.remaining for chain in app.store.chains(run.run_id))
