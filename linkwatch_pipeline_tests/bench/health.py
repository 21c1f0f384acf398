"""What the five-minute check costs with very many links: the look that reads them all, and those that do not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.metrics.local import LocalMetrics
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.builders import RUN_ID, a_link, a_run, after
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

LINKS = 600_000
AT_ONCE = 20_000


def health_look(folder: Path) -> Iterable[Result]:
    """CPU seconds of the first look of a day and of the one after it."""
    folder.mkdir()
    store = SqliteStore.open(folder / "linkwatch.sqlite3")
    try:
        for begin in range(0, LINKS, AT_ONCE):
            store.save_registry(links=[(_observed(number), None) for number in range(begin, begin + AT_ONCE)])
        store.create_run(a_run(closed_at=after(minutes=20)))
        clock, surveyor, metrics = VirtualClock(after(hours=1)), Surveyor(), LocalMetrics(folder / "metrics.jsonl")
        for name, target in (("first look of a day", 30.0), ("any other look", 0.5)):
            began = time.process_time()
            watch_health(store, metrics, clock=clock, surveyor=surveyor)
            spent = time.process_time() - began
            yield Result(f"health of {LINKS:,} links, {name}", spent, "s", target, "CPU of one process")
            clock.advance(timedelta(minutes=5))
    finally:
        store.close()


def _observed(number: int) -> Link:
    host = f"host-{number // 6}.example.com"
    held = Allocation(run_id=RUN_ID, sequence=3, host=host, config_version=1)
    return a_link(
        f"link-{number:06d}",
        f"https://{host}/{number}",
        active_since=after(days=-60),
        last_sequence=3,
        allocations={AllocationSlot.WEEKLY: held},
    )
