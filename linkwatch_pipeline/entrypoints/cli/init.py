"""`linkwatch init`."""

from __future__ import annotations

import os

import click

from linkwatch_pipeline.entrypoints.cli.opening import announce, home_folder
from linkwatch_pipeline.entrypoints.cli.output import say


@click.command()
@click.option(
    "--fixture",
    "pairs",
    metavar="IP:PORT[,..]",
    help="Make a fixture home: it reaches only these loopback addresses, and nothing else ever.",
)
@click.pass_context
def init(context: click.Context, pairs: str | None) -> None:
    """Make a new home."""
    from linkwatch_pipeline.adapters.home import parse_fixture_pairs
    from linkwatch_pipeline.bootstrap import make_home

    fixture = parse_fixture_pairs(pairs) if pairs is not None else None
    home = make_home(home_folder(context), env=os.environ, fixture=fixture)
    announce(home)
    say(f"made a {'fixture ' if fixture is not None else ''}home in {home.folder}")
    say(f"its settings are in {home.settings_file}")
