"""`linkwatch owner`."""

from __future__ import annotations

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_table, say


@click.command()
@click.argument("team", type=values.team, required=False)
@click.argument("address", type=values.address, metavar="[ADDR]", required=False)
@click.option("--list", "as_list", is_flag=True, help="List the owners instead.")
@click.pass_context
def owner(context: click.Context, team: str | None, address: str | None, as_list: bool) -> None:
    """Say where a team's notices go."""
    from linkwatch_pipeline.use_cases.register import set_owner

    if as_list == (team is not None) or (team is None) != (address is None):
        raise click.UsageError("Give a team and its address, or --list.", context)
    with open_app(context) as app:
        if team is not None and address is not None:
            made = set_owner(app.store, team=team, address=address)
            say(f"notices to {made.team} go to {made.address}")
            return
        print_table(("TEAM", "ADDRESS"), ((known.team, known.address) for known in app.store.owners()))
