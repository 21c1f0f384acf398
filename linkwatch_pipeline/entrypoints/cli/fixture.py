"""`linkwatch fixture`: the local page whose answer a file decides."""

from __future__ import annotations

import click

from linkwatch_pipeline.adapters.home import find_home
from linkwatch_pipeline.entrypoints.cli.opening import announce, home_folder


@click.command()
@click.option("--port", type=click.IntRange(1024, 65535), default=8765, show_default=True)
@click.option("--state", "state_file", metavar="FILE", help="JSON that decides the answer, read anew for each request.")
@click.pass_context
def fixture(context: click.Context, port: int, state_file: str | None) -> None:
    """Serve the fixture site on 127.0.0.1 until interrupted."""
    announce(find_home(home_folder(context)))
