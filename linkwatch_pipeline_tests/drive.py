"""Works through a week without Dagster, so that it starts fast: `python -m linkwatch_pipeline_tests.drive HOME WEEK`.

The same parts in the same order as `linkwatch run`: one runner, begin, observe, close, until nothing is left.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.timestamps import parse_week
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline_tests.patience import be_patient


def drive_week(app: App, intended_at: datetime) -> None:
    """Observe a week and its retry runs to their end, resuming what is there."""
    app = app.in_week(intended_at)
    with app.sole_runner() as worker:
        while not (run := begin_week(app.store, intended_at, now=app.clock.now())).state.is_over:
            app.observe(run, None, worker=worker)
            finish_run(app.store, run.run_id, now=app.clock.now())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.drive")
    parser.add_argument("home", type=Path)
    parser.add_argument("week", type=parse_week)
    arguments = parser.parse_args()
    be_patient()
    with build_app(arguments.home, env={}) as app:
        drive_week(app, arguments.week)


if __name__ == "__main__":
    main()
