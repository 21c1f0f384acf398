"""`linkwatch generate-history`: a made-up history in a new home, for notebooks, measurements and pictures."""

from __future__ import annotations

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_json, say


@click.command("generate-history")
@click.option("--links", metavar="N", type=int, default=600, show_default=True, help="How many links.")
@click.option("--weeks", metavar="N", type=int, default=26, show_default=True, help="How many weeks.")
@click.option("--seed", metavar="S", type=int, default=1, show_default=True, help="The same seed, the same history.")
@click.option("--through", metavar="MONDAY", help="The last week, such as 2026-09-28; the latest begun without it.")
@values.as_json
@click.pass_context
def generate_history(
    context: click.Context, links: int, weeks: int, seed: int, through: str | None, as_json: bool
) -> None:
    """Make up a handbook's history in a new home. Nothing is fetched and no mail is sent."""
    from linkwatch_pipeline.domain.timestamps import check_begun, parse_week, week_key, week_start
    from linkwatch_pipeline.use_cases.generate_history import IN_STORE_UP_TO, check_size, weeks_through
    from linkwatch_pipeline.use_cases.generate_history import generate_history as generate

    check_size(links, weeks, seed)
    last = parse_week(through) if through is not None else None
    with open_app(context) as app:
        if last is not None:
            check_begun(last, now=app.clock.now(), field="through")
        mondays = weeks_through(last or week_start(app.clock.now()), weeks)
        made = generate(
            app.store,
            app.warehouse,
            app.reports,
            app.make_history(links, seed=seed, first_week=mondays[0]),
            mondays,
            in_store=links * weeks <= IN_STORE_UP_TO,
            default_confirm=app.default_confirm,
            clock=app.clock,
            grouped=app.grouped,
        )
        folder = app.home.folder
    found = {
        "home": str(folder),
        "links": made.links,
        "weeks": [week_key(week) for week in made.weeks],
        "observations": made.observations,
        "transitions": made.transitions,
        "in_store": made.in_store,
    }
    if as_json:
        print_json(found)
        return
    where = "in the store and the warehouse" if made.in_store else "in the warehouse alone"
    say(f"made up {made.weeks[0]:%Y-%m-%d} to {made.weeks[-1]:%Y-%m-%d} in {folder}")
    say(f"{made.links} links, {made.observations} observations, {made.transitions} transitions; looks are {where}")
