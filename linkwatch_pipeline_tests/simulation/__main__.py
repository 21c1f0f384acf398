"""Replay seeds: `python -m linkwatch_pipeline_tests.simulation FIRST [COUNT]`."""

from __future__ import annotations

import sys

from linkwatch_pipeline_tests.simulation.cluster import simulate

first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
failed = 0
for seed in range(first, first + count):
    try:
        cluster = simulate(seed)
    except AssertionError as broken:
        failed += 1
        print(broken)
    else:
        if count == 1:
            requests, ended = len(cluster.internet.log), cluster.clock.now() - cluster.clock.start
            print(
                f"seed {seed}: {requests} requests, {cluster.crashes} crashes, {ended} simulated, all invariants hold"
            )
print(f"{count - failed} of {count} seeds hold")
sys.exit(1 if failed else 0)
