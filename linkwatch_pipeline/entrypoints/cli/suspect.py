"""`linkwatch release-notices` and `discard-notices`: what a person decides about a run that was held as suspect."""

from __future__ import annotations

import click

from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import say


@click.command("release-notices")
@click.argument("run_id", metavar="RUN")
@click.option("--by", metavar="WHO", help="Who decides so.")
@click.pass_context
def release_notices(context: click.Context, run_id: str, by: str | None) -> None:
    """Let the notices of a held run go: what it saw is true."""
    from linkwatch_pipeline.use_cases.release import release_run

    with open_app(context) as app:
        done = release_run(app.store, run_id, by=by, now=app.clock.now())
    say(f"released: {done.notices} notices of run {run_id}; 'linkwatch deliver' sends them")


@click.command("discard-notices")
@click.argument("run_id", metavar="RUN")
@click.option("--reason", metavar="TEXT", help="Why, for whoever reads it later.")
@click.option("--by", metavar="WHO", help="Who decides so.")
@click.pass_context
def discard_notices(context: click.Context, run_id: str, reason: str | None, by: str | None) -> None:
    """Tell nobody of what a held run saw: the checker was ill."""
    from linkwatch_pipeline.use_cases.release import discard_run

    with open_app(context) as app:
        done = discard_run(app.store, run_id, by=by, why=reason, now=app.clock.now())
    say(f"discarded: {done.notices} notices of run {run_id}; nobody is told")
