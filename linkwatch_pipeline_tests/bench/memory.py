"""How much memory a run takes, by how many links there are: each size in a process of its own, in virtual time.

python -m linkwatch_pipeline_tests.bench.memory LINKS HOSTS BUSIEST CONCURRENCY     # one size; prints the peak in MiB

600,000 links end within a run's six hours with 200 checks at once: 600000 100000 500 200, some ten minutes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.bootstrap import SilentProgress
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, Request

SIZES = ((6_000, 1_000, 100, 20), (60_000, 10_000, 500, 20))
_REGISTERED_TOGETHER = 5_000


class _Forgotten(list[Request]):
    """The internet's log would outgrow all else."""

    def append(self, request: Request, /) -> None:
        """Keep nothing."""


def memory(folder: Path) -> Iterator[Result]:
    """The peak of a whole process: Python, the registry, dispatch, the checks and the close."""
    for size in SIZES:
        command = [sys.executable, "-m", "linkwatch_pipeline_tests.bench.memory", *map(str, size)]
        peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        links, hosts, busiest, concurrency = size
        detail = f"{links:,} links on {hosts:,} hosts, {busiest:,} of them on one; concurrency {concurrency}"
        yield Result("peak memory of a run's process", peak, "MiB", 200.0, detail)


def peak_of_a_run(links: int, hosts: int, busiest: int, concurrency: int) -> float:
    """MiB, from a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), lambda url, visit: Answer(takes=timedelta(seconds=2)), concurrency=concurrency)
        engine.internet.log = _Forgotten()
        engine.progress = SilentProgress()  # type: ignore[assignment]
        _register(engine, links, hosts, busiest)
        run = engine.observe()  # each commit by itself: a group as long as a run would be kept in memory by SQLite
        assert run.totals is not None
        assert run.totals.by_end == {"reachable": links}
        engine.store.close()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _register(engine: Engine, links: int, hosts: int, busiest: int) -> None:
    for start in range(0, links, _REGISTERED_TOGETHER):
        some = [_link(n, hosts, busiest) for n in range(start, min(start + _REGISTERED_TOGETHER, links))]
        engine.store.save_registry(links=[(link, None) for link in some])


def _link(number: int, hosts: int, busiest: int) -> Link:
    host = f"h{0 if number < busiest else 1 + number % (hosts - 1):06d}.example"
    return Link(
        id=f"link-{number:07d}",
        url=f"https://{host}/{number}",
        host=host,
        owner="docs-team",
        active_since=MONDAY - timedelta(days=1),
        allocations={},
    )


if __name__ == "__main__":
    print(peak_of_a_run(*map(int, sys.argv[1:5])))
