"""`linkwatch worker`: check what the shared queue brings, for containers, until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.opening import look_for_half_an_import, open_app
from linkwatch_pipeline.entrypoints.cli.output import note

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App


@click.command()
@click.option(
    "--concurrency", type=click.IntRange(1, 200), help="How many checks side by side; the setting without it."
)
@click.pass_context
def worker(context: click.Context, concurrency: int | None) -> None:
    """Check links from the queue until told to end (SIGTERM). Needs the profile aws."""
    from linkwatch_pipeline.entrypoints.json_logs import log_as_json

    with open_app(context, flags={"concurrency": concurrency}, if_unfinished=None) as app:
        app.require_service()  # refused here: every message that it took would fail, and in the end be given up
        look_for_half_an_import(app)
        app.require_contact()
        log_as_json(always={"worker": (name := _name())})
        note("working on the queue; SIGTERM or Ctrl-C ends it after the checks that were begun")
        asyncio.run(_work(app, name))
        note("ended")


def _name() -> str:
    from linkwatch_pipeline.bootstrap import new_worker

    return new_worker("worker")


async def _work(app: App, name: str) -> None:
    from linkwatch_pipeline.use_cases.work_on_queue import work_on_queue

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with app.checking(worker=name) as parts:
        await work_on_queue(parts, app.shared_queue, concurrency=app.settings.concurrency, stop=stop)
