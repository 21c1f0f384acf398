"""`linkwatch fixture`: the local site whose answers a file decides."""

from __future__ import annotations

from pathlib import Path

import click

from linkwatch_pipeline.entrypoints.cli.opening import announce, home_folder
from linkwatch_pipeline.entrypoints.cli.output import say


@click.command()
@click.option("--port", type=click.IntRange(1024, 65535), default=8765, show_default=True)
@click.option(
    "--state",
    "state_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help='JSON that decides the answers, such as {"status": 404}; read anew for each request.',
)
@click.pass_context
def fixture(context: click.Context, port: int, state_file: Path | None) -> None:
    """Serve the fixture site on 127.0.0.1 until interrupted."""
    from linkwatch_pipeline.adapters.fixture_site import FixtureSite
    from linkwatch_pipeline.adapters.home import find_home

    announce(find_home(home_folder(context)))
    site = FixtureSite(port=port, state_file=state_file)
    try:
        say(f"serving {site.url}, answering as {state_file or 'by default'}; Ctrl-C ends it")
        site.serve_forever()
    except KeyboardInterrupt:
        say("ended")
