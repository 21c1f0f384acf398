"""Replay seeds: `python -m linkwatch_pipeline_tests.simulation FIRST [COUNT]`."""

from __future__ import annotations

import argparse
import sys

from linkwatch_pipeline_tests.simulation.cluster import simulate
from linkwatch_pipeline_tests.whole_numbers import whole_number


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.simulation")
    parser.add_argument("first", metavar="FIRST", type=whole_number(0, 10**12), help="the first seed")
    parser.add_argument("count", metavar="COUNT", type=whole_number(1, 10**9), nargs="?", default=1, help="how many")
    given = parser.parse_args()
    failed = 0
    for seed in range(given.first, given.first + given.count):
        try:
            cluster = simulate(seed)
        except AssertionError as broken:
            failed += 1
            print(broken)
        else:
            if given.count == 1:
                requests, ended = len(cluster.internet.log), cluster.clock.now() - cluster.clock.start
                seen = f"{requests} requests, {cluster.crashes} crashes, {ended} simulated"
                print(f"seed {seed}: {seen}, all invariants hold")
    print(f"{given.count - failed} of {given.count} seeds hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
