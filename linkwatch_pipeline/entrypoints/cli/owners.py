"""`linkwatch owner`."""

from __future__ import annotations

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_table, say


@click.command()
@click.argument("team", type=values.team, required=False)
@click.argument("address", type=values.address, metavar="[ADDR]", required=False)
@click.option("--delivery", type=click.Choice(("each", "digest")), help="A mail for each change, or one for each run.")
@click.option("--list", "as_list", is_flag=True, help="List the owners instead.")
@click.pass_context
def owner(context: click.Context, team: str | None, address: str | None, delivery: str | None, as_list: bool) -> None:
    """Say where a team's notices go, and how."""
    from linkwatch_pipeline.domain.links import Delivery
    from linkwatch_pipeline.use_cases.register import set_owner

    if as_list == (team is not None) or (team is not None and address is None and delivery is None):
        raise click.UsageError("Give a team and its address or --delivery, or --list.", context)
    if as_list and delivery is not None:
        raise click.UsageError("--list and --delivery exclude each other.", context)
    with open_app(context) as app:
        if team is not None:
            how = Delivery(delivery) if delivery is not None else None
            made = set_owner(app.store, team=team, address=address, delivery=how)
            in_digests = ", as one digest for each run" if made.delivery is Delivery.DIGEST else ""
            say(f"notices to {made.team} go to {made.address}{in_digests}")
            return
        owners = app.store.owners()
        print_table(("TEAM", "ADDRESS", "DELIVERY"), ((o.team, o.address, o.delivery.value) for o in owners))
