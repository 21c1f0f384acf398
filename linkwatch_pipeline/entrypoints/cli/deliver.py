"""`linkwatch deliver`: tell the owners."""

from __future__ import annotations

from dataclasses import asdict

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import look_for_half_an_import, open_app
from linkwatch_pipeline.entrypoints.cli.output import print_json, say


@click.command()
@click.option("--refused", is_flag=True, help="Those that were refused for good too.")
@click.option("--arrived", metavar="NOTICE", multiple=True, help="The mail of an unknown one is in the mailbox.")
@click.option("--again", metavar="NOTICE", multiple=True, help="The mail of an unknown one is not: send it once more.")
@values.as_json
@click.pass_context
def deliver(
    context: click.Context, refused: bool, arrived: tuple[str, ...], again: tuple[str, ...], as_json: bool
) -> int:
    """Send the notices that are due."""
    with open_app(context, if_unfinished=None) as app:
        app.require_mailer()
        look_for_half_an_import(app)
        for notice in app.settle_doubts(arrived=arrived, again=again):
            if not as_json:
                say(f"{notice.transition_id}: {notice.status.value}")
        report = app.deliver(refused_too=refused)
    if as_json:
        print_json({**asdict(report), "unsent": report.unsent})
    else:
        say(f"sent {report.sent}, to {app.mail_destination}")
        for end, count in asdict(report).items():
            if end != "sent" and count:
                say(f"{end.replace('_', ' ')}: {count}; see 'linkwatch outbox'")
    return 1 if report.unsent else 0
