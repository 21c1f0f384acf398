"""How long a person waits for `linkwatch --help`, and a cold start for its functions, beside what Python needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from linkwatch_pipeline_tests.bench.result import Result

ROUNDS = 15
ROOT = Path(__file__).resolve().parents[2]


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


def functions_import_time(folder: Path) -> Result:
    """A cold start's import of the Lambda functions from their zip: no bytecode, nothing else installed."""
    unpacked, times = folder / "task", []
    pack = [sys.executable, str(ROOT / "deploy" / "package_lambda.py"), "--out", str(folder / "linkwatch.zip")]
    subprocess.run(pack, check=True, stdout=subprocess.DEVNULL)
    shutil.unpack_archive(folder / "linkwatch.zip", unpacked)
    program = f"import sys; sys.path.insert(0, {str(unpacked)!r}); import linkwatch_pipeline.entrypoints.aws_lambda"
    isolated = [sys.executable, "-I", "-S", "-B", "-c"]
    for _ in range(ROUNDS):
        times.append(_seconds([*isolated, program]) - _seconds([*isolated, "pass"]))
    size = (folder / "linkwatch.zip").stat().st_size
    return Result("import of the Lambda functions", min(times), "s", 1.0, f"zip of {size:,} bytes; best of {ROUNDS}")


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
