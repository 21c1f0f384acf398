"""`linkwatch dev`: the Dagster UI with its daemon, on this home."""

from __future__ import annotations

import os
import sys

import click

from linkwatch_pipeline.entrypoints.cli.dagster_home import prepare_dagster
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import note


@click.command()
@click.option("--port", type=click.IntRange(1024, 65535), default=3000, show_default=True)
@click.pass_context
def dev(context: click.Context, port: int) -> None:
    """Open the Dagster UI on this home: its assets, runs, schedule and sensors."""
    with open_app(context) as app:
        folder, home = prepare_dagster(app.home.dagster), app.home.folder
    note(f"the Dagster UI will be at http://127.0.0.1:{port}; Ctrl-C ends it")
    environment = {**os.environ, "DAGSTER_HOME": str(folder), "LINKWATCH_HOME": str(home)}
    command = ["-m", "dagster", "dev", "-m", "linkwatch_pipeline.definitions", "-h", "127.0.0.1", "-p", str(port)]
    os.execve(sys.executable, [sys.executable, *command], environment)
