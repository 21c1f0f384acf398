"""`linkwatch dev`: the Dagster UI with its daemon, on this home."""

from __future__ import annotations

import os
import signal
import sys

import click

from linkwatch_pipeline.entrypoints.cli.dagster_home import WORKSPACE, prepare_dagster
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import note

# Dagster says of its own command that it has a younger sister; nobody who types `linkwatch dev` can act on it.
_QUIET = ("-W", "ignore:Function `dev_command` is superseded")


@click.command()
@click.option("--port", type=click.IntRange(1024, 65535), default=3000, show_default=True)
@click.pass_context
def dev(context: click.Context, port: int) -> None:
    """Open the Dagster UI on this home: its assets, runs, schedule and sensors."""
    with open_app(context) as app:
        app.store.get_link("")  # a database that cannot be used is refused here, not by every sensor for ever
        folder, home = prepare_dagster(app.home.dagster), app.home.folder
    note(f"the Dagster UI will be at http://127.0.0.1:{port}; Ctrl-C ends it")
    environment = {**os.environ, "DAGSTER_HOME": str(folder), "LINKWATCH_HOME": str(home)}
    command = [*_QUIET, "-m", "dagster", "dev", "-w", WORKSPACE, "-h", "127.0.0.1", "-p", str(port)]
    os.chdir(folder)  # Dagster also looks for settings where it is started; here it finds these
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for `dev &`: nothing would end
    os.execve(sys.executable, [sys.executable, *command], environment)
