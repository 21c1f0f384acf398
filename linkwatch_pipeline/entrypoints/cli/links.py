"""`linkwatch register`, `update`, `retire` and `links`: what is watched, for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import exit_code_of, open_app, warn
from linkwatch_pipeline.entrypoints.cli.output import print_json_list, print_long_table, say
from linkwatch_pipeline.entrypoints.cli.unreachable import warn_of_unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from linkwatch_pipeline.domain.links import Link
    from linkwatch_pipeline.domain.mutes import Mute
    from linkwatch_pipeline.use_cases.register import Registered

    LinkAndMute = tuple[Link, Mute | None]

STATES = ("unknown", "reachable", "broken")


@click.command()
@click.argument("link_id", type=values.link_id)
@click.argument("url", type=values.url)
@click.option("--owner", type=values.team, required=True, help="The team that is told.")
@click.option("--notify", metavar="ADDR", type=values.address, help="The address of a new owner.")
@click.option("--expect", "marker", type=values.text, help="Text that the page must contain.")
@click.option("--confirm", metavar="N", type=values.confirmations, help="Failures in a row that make it broken.")
@click.pass_context
def register(
    context: click.Context,
    link_id: str,
    url: str,
    owner: str,
    notify: str | None,
    marker: str | None,
    confirm: int | None,
) -> None:
    """Watch a URL; nothing is fetched yet."""
    from linkwatch_pipeline.use_cases.register import register_link

    with open_app(context) as app:
        done = register_link(
            app.store,
            link_id=link_id,
            url=url,
            owner=owner,
            notify=notify,
            marker=marker,
            confirm=confirm,
            now=app.clock.now(),
        )
    _tell(done)
    warn_of_unreachable(context, [done.link])


@click.command()
@click.argument("link_id", type=values.link_id)
@click.argument("url", type=values.url, required=False)
@click.option("--url", "new_url", type=values.url, help="The page's new address; its state is unknown again.")
@click.option("--owner", type=values.team, help="The team that is told.")
@click.option("--notify", metavar="ADDR", type=values.address, help="The address of a new owner.")
@click.option("--expect", "marker", type=values.text, help="Text that the page must contain.")
@click.option("--no-expect", is_flag=True, help="Expect no text any more.")
@click.option("--confirm", metavar="N", type=values.confirmations, help="Failures in a row that make it broken.")
@click.option("--no-confirm", is_flag=True, help="Confirm as the settings say for all links.")
@click.pass_context
def update(
    context: click.Context,
    link_id: str,
    url: str | None,
    new_url: str | None,
    owner: str | None,
    notify: str | None,
    marker: str | None,
    no_expect: bool,
    confirm: int | None,
    no_confirm: bool,
) -> None:
    """Change a link; what is not given stays."""
    from linkwatch_pipeline.use_cases.register import KEEP, update_link

    _refuse_both(context, url, new_url, "URL and --url")
    _refuse_both(context, marker, no_expect, "--expect and --no-expect")
    _refuse_both(context, confirm, no_confirm, "--confirm and --no-confirm")
    url = url or new_url
    if not any((url, owner, notify, marker, no_expect, confirm, no_confirm)):
        raise click.UsageError("Say what to change.", context)
    with open_app(context) as app:
        done = update_link(
            app.store,
            link_id=link_id,
            url=url,
            owner=owner,
            notify=notify,
            marker=marker if marker is not None or no_expect else KEEP,
            confirm=confirm if confirm is not None or no_confirm else KEEP,
            now=app.clock.now(),
        )
    _tell(done)
    warn_of_unreachable(context, [done.link] if url is not None else [])


@click.command()
@click.argument("link_id", type=values.link_id)
@click.pass_context
def retire(context: click.Context, link_id: str) -> None:
    """Stop watching a link; its history stays."""
    from linkwatch_pipeline.use_cases.register import retire_link

    with open_app(context) as app:
        done = retire_link(app.store, link_id=link_id, now=app.clock.now())
    _tell(done)


@click.command()
@click.option("--owner", type=values.team, help="Only this team's.")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@values.as_json
@click.pass_context
def links(context: click.Context, owner: str | None, state: str | None, as_json: bool) -> int:
    """List the links."""
    from linkwatch_pipeline.domain.links import LinkState
    from linkwatch_pipeline.domain.mutes import mute_of
    from linkwatch_pipeline.entrypoints.cli.documents import link_document
    from linkwatch_pipeline.use_cases.damage import Damage
    from linkwatch_pipeline.use_cases.register import list_links

    damage, wanted_state = Damage(), LinkState(state) if state is not None else None
    with open_app(context, if_unfinished=warn) as app:
        store, mutes, now = app.store, list(app.store.mutes(damaged=damage)), app.clock.now()

        def found() -> Iterator[LinkAndMute]:
            wanted = list_links(store, owner=owner, state=wanted_state, damaged=damage)
            return ((link, mute_of(mutes, link.id, link.host, now=now)) for link in wanted)

        if as_json:
            print_json_list(link_document(link, mute) for link, mute in found())
        else:
            print_links(found)
    return exit_code_of(damage)


def print_links(found: Callable[[], Iterator[LinkAndMute]]) -> None:
    """A table of links, each with the mute that keeps it quiet now; a retired, acknowledged or muted one says so."""
    if next(found(), None) is None:
        say("no links")
        return
    print_long_table(
        ("LINK", "STATE", "SINCE", "OWNER", "URL"),
        lambda: ((link.id, _state(link, mute), link.state_since, link.owner, link.url) for link, mute in found()),
    )


def _state(link: Link, mute: Mute | None) -> str:
    notes = [
        *(["retired"] if link.retired_at is not None else []),
        *(["acknowledged"] if link.acknowledged is not None else []),
        *([f"muted until {mute.over_at.date().isoformat()}"] if mute is not None else []),
    ]
    return link.state.value + (f" ({', '.join(notes)})" if notes else "")


def _tell(done: Registered) -> None:
    owner = f", owner {done.link.owner}" if done.link.owner is not None else ""
    unchanged = "; nothing changed" if done.change.value == "unchanged" else ""
    say(f"{done.change.value}: {done.link.id} {done.link.url}{owner}{unchanged}")


def _refuse_both(context: click.Context, one: object, other: object, names: str) -> None:
    if one and other:
        raise click.UsageError(f"{names} exclude each other.", context)
