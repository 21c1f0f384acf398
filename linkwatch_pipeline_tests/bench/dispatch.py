"""How long the dispatch of SPEC 3's inventory takes: 6,000 links on 1,000 hosts, every job a row in SQLite."""

from __future__ import annotations

import time
from pathlib import Path

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.gates.busy_week import story_start
from linkwatch_pipeline_tests.simulation.engine import Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer

HOSTS, LINKS_PER_HOST = 1000, 6


def dispatch_time(folder: Path) -> Result:
    """Wall time from no run to an open one."""
    folder.mkdir(parents=True)
    engine = Engine(folder, lambda url, visit: Answer())
    with engine.store.grouped():
        engine.register(f"https://h{host:04d}.example/{n}" for host in range(HOSTS) for n in range(LINKS_PER_HOST))
    engine.store.close()
    store = SqliteStore.open(folder / "linkwatch.sqlite3")
    started, cpu = time.perf_counter(), time.process_time()
    run = begin_week(store, story_start(), now=story_start())
    took, spent = time.perf_counter() - started, time.process_time() - cpu
    assert run.expected == HOSTS * LINKS_PER_HOST
    store.close()
    return Result(
        f"dispatch of {HOSTS * LINKS_PER_HOST:,} links on {HOSTS:,} hosts",
        took,
        "s",
        None,
        f"{spent:.1f} s of CPU, {took / run.expected * 1000:.2f} ms a link; SQLite, synchronous=FULL",
    )
