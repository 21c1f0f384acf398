"""`make bench`: the numbers of docs/performance.md, or only those named: python -m linkwatch_pipeline_tests.bench cpu

Ends with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline_tests.bench.cpu import cpu_per_check
from linkwatch_pipeline_tests.bench.delivery import release_to_accepted
from linkwatch_pipeline_tests.bench.dispatch import dispatch_time
from linkwatch_pipeline_tests.bench.health import health_look
from linkwatch_pipeline_tests.bench.makespan import on_loopback, simulated
from linkwatch_pipeline_tests.bench.memory import memory
from linkwatch_pipeline_tests.bench.orders import orders
from linkwatch_pipeline_tests.bench.peers import fast_peers, polite_peers
from linkwatch_pipeline_tests.bench.result import Result, machine
from linkwatch_pipeline_tests.bench.start_up import functions_import_time, help_time
from linkwatch_pipeline_tests.bench.status import service_status
from linkwatch_pipeline_tests.bench.store_calls import store_calls
from linkwatch_pipeline_tests.bench.warehouse import warehouse
from linkwatch_pipeline_tests.interruptible import exit_code_of

BENCHES: dict[str, Callable[[Path], Iterable[Result]]] = {
    "help": lambda folder: [help_time()],
    "lambda": lambda folder: [functions_import_time(folder)],
    "dispatch": lambda folder: [dispatch_time(folder)],
    "cpu": lambda folder: [cpu_per_check(folder)],
    "loopback": on_loopback,
    "orders": orders,
    "polite-peers": polite_peers,
    "fast-peers": fast_peers,
    "simulated": simulated,
    "memory": memory,
    "store-calls": store_calls,
    "delivery": lambda folder: release_to_accepted(),
    "health": health_look,
    "status": service_status,
    "warehouse": warehouse,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}; all without one")
    names = parser.parse_args().names or list(BENCHES)
    if unknown := set(names) - set(BENCHES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    return exit_code_of(lambda: _measure(names), if_interrupted="what was begun is gone")


def _measure(names: list[str]) -> int:
    print(f"{format_seconds(SystemClock().now())}, {machine()}", flush=True)
    all_met = True
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for result in BENCHES[name](Path(folder) / name):
                print(result, flush=True)
                all_met = all_met and result.is_met
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
