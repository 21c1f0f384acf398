"""What every store promises to processes that work on it at the same time."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import RUN_ID
from linkwatch_pipeline_tests.contracts.store_workers import (
    LINKS,
    STATUSES,
    Won,
    assert_records_agree,
    compete,
    start_together,
)

PROCESSES = 4


def run_processes(open_store: Callable[[], Store], witness: Path) -> list[Won]:
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(PROCESSES)
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn, initializer=start_together, initargs=(barrier,)) as pool:
        futures = [pool.submit(compete, open_store, f"process-{n}", witness) for n in range(PROCESSES)]
        return [future.result() for future in futures]


def test_of_processes_that_all_do_the_same_each_thing_is_done_by_one(
    open_store: Callable[[], Store], tmp_path: Path
) -> None:
    """They open storage that nobody has opened before, register, record, dispatch, commit, claim and visit."""
    won = run_processes(open_store, tmp_path / "somebody-is-visiting")

    def winners(what: str) -> list[str]:
        """All that was won, by anybody: what was won twice would be here twice."""
        return sorted(item for process in won for item in getattr(process, what))

    store = open_store()
    try:
        assert winners("registered") == [link.id for link in LINKS]
        assert winners("applied") == sorted(f"{n}:{link.id}" for link in LINKS for n in range(len(STATUSES)))
        transitions = [t.id for t in store.transitions()]
        by_hand = [t.id for t in store.transitions() if t.version <= 5]
        assert winners("transitions") == by_hand == [f"{link.id}:{v}" for link in LINKS for v in (2, 3, 4, 5)]
        assert [process.allocated for process in won] == [[len(STATUSES)] * len(LINKS)] * PROCESSES
        assert winners("jobs_ended") == sorted(f"{RUN_ID}:{link.id}" for link in LINKS)
        assert winners("claimed") == transitions
        assert Counter(notice.status for notice in store.notices()) == {NoticeStatus.CLAIMED: len(transitions)}
        assert [job.status for job in store.jobs(RUN_ID)] == [JobStatus.DONE] * len(LINKS)
        assert sum(process.visits for process in won) > 0
        assert_records_agree(store)
    finally:
        store.close()
