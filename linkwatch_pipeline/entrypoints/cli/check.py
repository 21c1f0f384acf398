"""`linkwatch check`: one observation now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import complain, print_json, say

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App
    from linkwatch_pipeline.use_cases.hand_check import HandCheck


@click.command()
@click.argument("link_id", type=values.link_id)
@click.option(
    "--sequence", metavar="N", type=values.sequence, help="Its place in the history; a committed one is not fetched."
)
@values.as_json
@click.pass_context
def check(context: click.Context, link_id: str, sequence: int | None, as_json: bool) -> int:
    """Check one link now."""
    import asyncio

    from linkwatch_pipeline.domain.outcomes import Outcome
    from linkwatch_pipeline.entrypoints.cli.documents import recorded_document
    from linkwatch_pipeline.entrypoints.cli.told import told
    from linkwatch_pipeline.use_cases.hand_check import HostBusy

    with open_app(context) as app:
        try:
            done = asyncio.run(_check(app, link_id, sequence))
        except HostBusy as busy:
            complain(str(busy))
            return 1
    shown = (done.observation, done.link, done.kind.value, done.transition)
    if as_json:
        print_json(recorded_document(*shown))
    else:
        say(told(*shown))
    return 0 if done.observation.outcome is Outcome.REACHABLE else 1


async def _check(app: App, link_id: str, sequence: int | None) -> HandCheck:
    from linkwatch_pipeline.bootstrap import new_worker
    from linkwatch_pipeline.use_cases.hand_check import check_by_hand, seen_before

    # Before a fetcher is made, which needs a contact: a committed job makes no request.
    seen = seen_before(app.store, link_id=link_id, sequence=sequence)
    if seen is not None:
        return seen

    async with app.checking(worker=new_worker("check")) as parts:
        return await check_by_hand(parts, link_id=link_id, sequence=sequence)
