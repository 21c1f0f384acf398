"""`linkwatch record`: feed an observation to the durable core without HTTP."""

from __future__ import annotations

import re
from typing import Any

import click

from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_json, say
from linkwatch_pipeline.entrypoints.cli.values import LINK_ID, SEQUENCE, URL, as_json


class _Status(click.ParamType):
    """An HTTP status, or `none`."""

    name = "S|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if isinstance(value, str) and not re.fullmatch(r"none|[1-9][0-9]{2}", value):
            self.fail(f"{value!r} is not an HTTP status. Give three digits, or none.", param, ctx)
        return value


@click.command()
@click.argument("link_id", type=LINK_ID)
@click.argument("url", type=URL)
@click.option("--sequence", type=SEQUENCE, required=True, help="The observation's place in the link's history.")
@click.option("--status", type=_Status(), required=True, help="What was answered; none for no answer.")
@click.option("--body", metavar="TEXT", help="The page; it is hashed and dropped.")
@click.option("--found/--not-found", default=True, help="Whether the expected text was there (a 2xx only).")
@as_json
@click.pass_context
def record(
    context: click.Context,
    link_id: str,
    url: str,
    sequence: int,
    status: str,
    body: str | None,
    found: bool,
    as_json: bool,
) -> None:
    """Record an observation without HTTP, for replays and drills."""
    from linkwatch_pipeline.entrypoints.cli.documents import recorded_document
    from linkwatch_pipeline.entrypoints.cli.told import told
    from linkwatch_pipeline.use_cases.feed_record import Fed, feed_record

    code = None if status == "none" else int(status)
    fed = Fed(link_id=link_id, url=url, sequence=sequence, status=code, body=body, found=found)
    with open_app(context) as app:
        done = feed_record(app.store, fed, default_confirm=app.default_confirm, now=app.clock.now())
    kind, link, transition = done.recorded.kind.value, done.recorded.link, done.recorded.transition
    if as_json:
        print_json(recorded_document(done.observation, link, kind, transition))
        return
    say(told(done.observation, link, kind, transition))
