"""A home with a made-up history: `made_home(tmp_path, links=60, weeks=6)` (docs/howto/make-up-a-history.md)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.use_cases.generate_history import MadeHistory, generate_history, weeks_through
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.virtual_clock import VirtualClock


def made_home(
    folder: Path,
    *,
    links: int,
    weeks: int,
    seed: int = 1,
    last: datetime = MONDAY,
    in_store: bool = True,
    confirm: int = 1,
) -> tuple[App, MadeHistory]:
    """A home whose history ends with the week `last`; it is two days later. The caller closes the app."""
    clock = VirtualClock(last + timedelta(days=2))
    app = build_app(folder, env={}, clock=clock, flags={"confirm": confirm})
    mondays = weeks_through(last, weeks)
    made = generate_history(
        app.store,
        app.warehouse,
        app.reports,
        app.make_history(links, seed=seed, first_week=mondays[0]),
        mondays,
        in_store=in_store,
        default_confirm=confirm,
        clock=clock,
        grouped=app.grouped,
    )
    assert made.weeks[-1] - made.weeks[0] == (weeks - 1) * WEEK
    return app, made
