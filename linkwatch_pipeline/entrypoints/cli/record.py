"""`linkwatch record`: feed an observation to the durable core without HTTP."""

from __future__ import annotations

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_json, say


@click.command()
@click.argument("link_id", type=values.link_id)
@click.argument("url", type=values.url)
@click.option(
    "--sequence",
    metavar="N",
    type=values.sequence,
    required=True,
    help="Its place in the link's history.",
)
@click.option("--status", metavar="S|none", type=values.status, required=True, help="The answer, if there was one.")
@click.option("--body", metavar="TEXT", help="The page; it is hashed and dropped.")
@click.option("--found/--not-found", default=True, help="Whether the expected text was there (a 2xx only).")
@values.as_json
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
