"""How long a person waits for `linkwatch --help`, beside what Python itself and click need."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from linkwatch_pipeline_tests.bench.result import Result

ROUNDS = 15


def help_time() -> Result:
    """The best of some rounds each, in turns."""
    linkwatch = str(Path(sys.executable).parent / "linkwatch")
    commands = ([linkwatch, "--help"], [sys.executable, "-c", "pass"], [sys.executable, "-c", "import click"])
    rounds = [[_seconds(command) for command in commands] for _ in range(ROUNDS)]
    ours, python, click = (min(times) for times in zip(*rounds, strict=True))
    return Result(
        "`linkwatch --help`, wall time",
        ours,
        "s",
        0.3,
        f"`python -c pass` {python:.3f} s, `python -c 'import click'` {click:.3f} s: "
        f"{ours / click:.2f} times the latter; best of {ROUNDS}",
    )


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
