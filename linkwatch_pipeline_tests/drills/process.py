"""What drills start as processes of their own, and kill."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.timestamps import format_utc, parse_utc, week_start
from linkwatch_pipeline_tests.drive import drive_week
from linkwatch_pipeline_tests.patience import be_patient

# The step after which a sender dies.
CLAIM, SEND = "claim_notice", "send"


def start(
    what: str, home: Path, *, now: datetime, env: dict[str, str], dies_after: str = ""
) -> subprocess.Popen[bytes]:
    """Begin `deliver` or `run` in a process of its own, whose clock begins at `now`."""
    words = [what, str(home), format_utc(now), *([dies_after] if dies_after else [])]
    command = [sys.executable, "-m", "linkwatch_pipeline_tests.drills.process", *words]
    return subprocess.Popen(command, env={**os.environ, **env})


def clock_from(moment: datetime) -> StoryClock:
    """The machine's pace, from another moment on."""
    return StoryClock(SystemClock(), moment)


class _Dying:
    """Somebody's part, with which the process is killed as soon as one of its calls has returned."""

    def __init__(self, part: Any, step: str) -> None:
        self._part = part
        self._step = step

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._part, name)
        return self._dying(call) if name == self._step else call

    def _dying(self, call: Any) -> Any:
        def last(*args: Any, **kwargs: Any) -> Any:
            call(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        return last


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.drills.process")
    parser.add_argument("what", choices=("deliver", "run"))
    parser.add_argument("home", type=Path)
    parser.add_argument("now", type=parse_utc)
    parser.add_argument("dies_after", nargs="?", default="")
    given = parser.parse_args()
    be_patient()
    with build_app(given.home, env=dict(os.environ), clock=clock_from(given.now)) as app:
        if given.what == "run":
            drive_week(app, week_start(given.now))
            return
        if given.dies_after:
            app.__dict__["store"] = _Dying(app.store, given.dies_after)
            app.__dict__["notifier"] = _Dying(app.notifier, given.dies_after)
        app.deliver()


if __name__ == "__main__":
    main()
