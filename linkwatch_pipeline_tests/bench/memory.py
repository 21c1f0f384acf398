"""How much memory a run takes, by how many links there are: each size in a process of its own, in virtual time.

python -m linkwatch_pipeline_tests.bench.memory LINKS HOSTS BUSIEST CONCURRENCY   # one size; each phase's peak in MiB

600,000 links end within a run's six hours with 200 checks at once: 600000 100000 500 200, about half an hour of CPU. A
database of 2 GB is written where TMPDIR points. Linux only: the peaks are VmHWM, set back before each phase.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from linkwatch_pipeline.bootstrap import SilentProgress
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.settings.entries import MAX_CONCURRENCY
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline.use_cases.review_week import review_week
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, Request
from linkwatch_pipeline_tests.virtual_clock import run_virtual
from linkwatch_pipeline_tests.whole_numbers import whole_number

T = TypeVar("T")
SIZES = ((6_000, 1_000, 100, 20), (60_000, 10_000, 500, 20))
_REGISTERED_TOGETHER = 5_000


class ForgottenRequests(list[Request]):
    """The internet's log would outgrow all else."""

    def append(self, request: Request, /) -> None:
        """Keep nothing."""


class ForgottenUrls(dict[str, int]):
    """As would the URLs that were asked for."""

    def __setitem__(self, url: str, asked: int, /) -> None:
        """Keep nothing."""


def memory(folder: Path) -> Iterator[Result]:
    """The peak of a whole process: Python, the registry, dispatch, the checks, the close and the week's review."""
    for size in SIZES:
        command = [sys.executable, "-m", "linkwatch_pipeline_tests.bench.memory", *map(str, size)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        peak = max(float(line.split()[1]) for line in lines)
        links, hosts, busiest, concurrency = size
        detail = f"{links:,} links on {hosts:,} hosts, {busiest:,} of them on one; concurrency {concurrency}"
        yield Result("peak memory of a run's process", peak, "MiB", 200.0, f"{detail}; {', '.join(lines)}")


def run_in_phases(links: int, hosts: int, busiest: int, concurrency: int) -> None:
    """Print each phase with its peak, from a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        engine = quiet_engine(Path(folder), concurrency)
        _phase("register", lambda: register(engine, links, hosts, busiest))
        run = _phase("dispatch", lambda: begin_week(engine.store, MONDAY, now=engine.clock.now()))
        # Each commit by itself: a group as long as a run would be kept in memory by SQLite.
        _phase("work", lambda: run_virtual(engine.work(run), engine.clock))
        run = _phase("close", lambda: finish_run(engine.store, run.run_id, now=engine.clock.now()))
        assert run.totals is not None
        assert run.totals.by_end == {"reachable": links}
        _phase("review", lambda: review_week(engine.store, MONDAY))
        engine.store.close()


def quiet_engine(folder: Path, concurrency: int) -> Engine:
    """An engine that keeps no memory of its own of what it did. Each page takes 2 s."""
    engine = Engine(folder, lambda url, visit: Answer(takes=timedelta(seconds=2)), concurrency=concurrency)
    engine.internet.log, engine.internet.asked = ForgottenRequests(), ForgottenUrls()
    engine.progress = SilentProgress()  # type: ignore[assignment]
    return engine


def register(engine: Engine, links: int, hosts: int, busiest: int) -> None:
    """Fill the registry: `busiest` links on one host, the others evenly on the other hosts."""
    for start in range(0, links, _REGISTERED_TOGETHER):
        some = [_link(n, hosts, busiest) for n in range(start, min(start + _REGISTERED_TOGETHER, links))]
        engine.store.save_registry(links=[(link, None) for link in some])


def _phase(name: str, play: Callable[[], T]) -> T:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak becomes what is held now
    result = play()
    (peak,) = (line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line.startswith("VmHWM"))
    print(f"{name} {int(peak.split()[1]) / 1024:.1f}", flush=True)
    return result


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.bench.memory")
    parser.add_argument("links", metavar="LINKS", type=whole_number(1, 9_999_999))
    parser.add_argument("hosts", metavar="HOSTS", type=whole_number(2, 1_000_000))
    parser.add_argument("busiest", metavar="BUSIEST", type=whole_number(0, 9_999_999), help="so many links on one host")
    parser.add_argument("concurrency", metavar="CONCURRENCY", type=whole_number(1, MAX_CONCURRENCY))
    given = parser.parse_args()
    if given.busiest > given.links:
        parser.error("BUSIEST is more than LINKS")
    run_in_phases(given.links, given.hosts, given.busiest, given.concurrency)


if __name__ == "__main__":
    main()
