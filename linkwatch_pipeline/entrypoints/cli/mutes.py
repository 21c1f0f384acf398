"""`linkwatch ack`, `mute`, `unmute` and `mutes`: what people know already, and what nobody wants to be told for now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import exit_code_of, open_app, warn
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from datetime import datetime

    from linkwatch_pipeline.domain.mutes import Mute

_reason = click.option("--reason", metavar="TEXT", required=True, help="Why, for whoever reads it later.")
_by = click.option("--by", metavar="WHO", help="Who says so.")


@click.command()
@click.argument("link_id", type=values.link_id)
@_reason
@_by
@click.pass_context
def ack(context: click.Context, link_id: str, reason: str, by: str | None) -> None:
    """Say that somebody knows of a break; its recovery ends that."""
    from linkwatch_pipeline.use_cases.mute import acknowledge

    with open_app(context) as app:
        link = acknowledge(app.store, link_id, reason=reason, by=by, now=app.clock.now())
    say(f"acknowledged: {link.id}, until it is reachable again")


@click.command()
@click.argument("target", metavar="LINK|HOST")
@click.option("--until", metavar="DATE", required=True, help="A day such as 2026-12-24, at most a year from now.")
@_reason
@_by
@click.pass_context
def mute(context: click.Context, target: str, until: str, reason: str, by: str | None) -> None:
    """Tell nobody of a link or a host until then; it is checked as before."""
    from linkwatch_pipeline.domain.timestamps import format_seconds
    from linkwatch_pipeline.use_cases import mute as use_case

    with open_app(context) as app:
        made = use_case.mute(app.store, target, until=until, reason=reason, by=by, now=app.clock.now())
    say(f"muted: {made.target} until {format_seconds(made.until)}")


@click.command()
@click.argument("target", metavar="LINK|HOST")
@click.pass_context
def unmute(context: click.Context, target: str) -> None:
    """End a mute now; what differs from what was told last is told."""
    from linkwatch_pipeline.use_cases import mute as use_case

    with open_app(context) as app:
        ended = use_case.unmute(app.store, target, now=app.clock.now())
    say(f"no longer muted: {ended.target}")


@click.command()
@values.as_json
@click.pass_context
def mutes(context: click.Context, as_json: bool) -> int:
    """List the mutes, those that ended included."""
    from linkwatch_pipeline.entrypoints.cli.documents import mute_document
    from linkwatch_pipeline.use_cases.damage import Damage
    from linkwatch_pipeline.use_cases.mute import list_mutes

    damage = Damage()
    with open_app(context, if_unfinished=warn) as app:
        views, now = list_mutes(app.store, damaged=damage), app.clock.now()
    if as_json:
        print_json([mute_document(view, now=now) for view in views])
    elif not views:
        say("nothing is muted")
    else:
        print_table(
            ("MUTED", "UNTIL", "LINKS", "BROKEN", "BY", "REASON"),
            ((v.mute.target, _until(v.mute, now), v.links, v.broken, v.mute.muted_by, v.mute.reason) for v in views),
        )
    return exit_code_of(damage)


def _until(mute: Mute, now: datetime) -> str:
    from linkwatch_pipeline.domain.timestamps import format_seconds

    over = format_seconds(mute.over_at)
    return over if mute.is_active(now) else f"ended {over}"
