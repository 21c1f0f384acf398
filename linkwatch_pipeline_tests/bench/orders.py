"""Ours beside other orders, without store and network: plain FIFO, and a queue with and without planned starts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.use_cases.simulate import (
    Workload,
    in_given_order,
    in_our_order,
    on_message_queue,
    varied_service,
    with_planned_starts,
)
from linkwatch_pipeline_tests.bench.makespan import shapes
from linkwatch_pipeline_tests.bench.result import Result

SEED = 1
PACE = Pace(concurrency=20, mean_service=timedelta(seconds=2), cooldown=timedelta(seconds=1))
OURS_AT_MOST = 1.02
PLANNED_AT_MOST = 1.08


def orders(_folder: Path) -> Iterator[Result]:
    """Makespan over bound on shapes of about 6,000 links, service varied around 2 s."""
    more = {"31 x 100 and 2,900 single": [100] * 31 + [1] * 2900, "60 x 100": [100] * 60}
    for shape, links_per_host in {**shapes(), **more}.items():
        chance = random.Random(SEED)
        chains = {f"host-{number:06d}": links for number, links in enumerate(links_per_host)}
        work = Workload(chains, varied_service(PACE, chance.gauss), PACE)
        in_order = list(range(len(work.takes)))
        shuffled = in_order.copy()
        chance.shuffle(shuffled)
        others = (
            f"FIFO by host {in_given_order(work, in_order) / work.bound:.3f}, "
            f"FIFO shuffled {in_given_order(work, shuffled) / work.bound:.3f}, "
            f"queue all at once {on_message_queue(work, {}) / work.bound:.3f}"
        )
        yield Result(f"{shape}: ours", in_our_order(work) / work.bound, "", OURS_AT_MOST, others)
        planned = with_planned_starts(work) / work.bound
        yield Result(f"{shape}: queue, planned starts", planned, "", PLANNED_AT_MOST, f"seed {SEED}")
