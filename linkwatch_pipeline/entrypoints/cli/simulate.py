"""`linkwatch simulate`: how long a run takes, on paper and in virtual time, before anybody is visited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import open_app, warn
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from datetime import timedelta

    from linkwatch_pipeline.use_cases.simulate import Forecast

MOST_LINKS = 10_000_000
_COUNT = click.IntRange(1, MOST_LINKS)


@click.command()
@click.option("--links", type=_COUNT, metavar="N", help="How many links; the home's own links and hosts without it.")
@click.option("--hosts", type=_COUNT, metavar="N", help="On how many hosts; one for every six links without it.")
@click.option("--busiest", type=_COUNT, metavar="N", help="Links of the busiest host; an equal share without it.")
@click.option("--mean-seconds", type=values.Seconds(0.01, 60), default=2.0, metavar="S", help="A visit; 2 without it.")
@click.option("--concurrency", type=click.IntRange(1, 1000), metavar="N", help="Visits at once; the home's, or 20.")
@click.option("--cooldown", type=values.Seconds(1, 3600), metavar="S", help="Rest of a host; the home's, or 1.")
@click.option(
    "--allowance",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Visits at once that the busiest host allows; what the home's settings say, or 1.",
)
@click.option("--seed", type=int, metavar="N", help="Vary the visits around their mean, by this seed.")
@values.as_json
@click.pass_context
def simulate(
    context: click.Context,
    links: int | None,
    hosts: int | None,
    busiest: int | None,
    mean_seconds: float,
    concurrency: int | None,
    cooldown: float | None,
    allowance: int | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Tell whether a run would be done in its window, and what would make it so. Nothing is visited."""
    import random
    from datetime import timedelta

    from linkwatch_pipeline.domain.planning import Pace
    from linkwatch_pipeline.use_cases.simulate import forecast

    if links is None:
        if hosts is not None or busiest is not None:
            raise click.UsageError("--hosts and --busiest need --links.", context)
        chains, home_concurrency, home_cooldown = _of_the_home(context, allowance)
    else:
        chains, home_concurrency, home_cooldown = _of_the_shape(links, hosts, busiest, allowance or 1), 20, 1.0
    pace = Pace(
        concurrency=concurrency or home_concurrency,
        mean_service=timedelta(seconds=mean_seconds),
        cooldown=timedelta(seconds=home_cooldown if cooldown is None else cooldown),
    )
    found = forecast(chains, pace, normal=random.Random(seed).gauss if seed is not None else None)
    print_json(_document(found)) if as_json else _print_forecast(found)
    return 0 if found.fits_window else 1


def _of_the_home(context: click.Context, allowance: int | None) -> tuple[dict[str, int], int, float]:
    from linkwatch_pipeline.domain.errors import InvalidInput
    from linkwatch_pipeline.use_cases.simulate import links_per_slot

    with open_app(context, if_unfinished=warn) as app:
        found, settings = links_per_slot(app.store, app.allowances, busiest=allowance), app.settings
        if not found:
            raise InvalidInput("links", "this home watches none", "Give a number, such as --links 6000 --hosts 1000.")
        return found, settings.concurrency, settings.cooldown_seconds


def _of_the_shape(links: int, hosts: int | None, busiest: int | None, allowance: int) -> dict[str, int]:
    from linkwatch_pipeline.domain.errors import InvalidInput
    from linkwatch_pipeline.domain.planning import agreed_chains, shape

    on = hosts if hosts is not None else -(-links // 6)
    try:
        shaped = shape(links=links, hosts=on, busiest=busiest if busiest is not None else -(-links // on))
        return agreed_chains(dict(shaped), allowance)
    except ValueError:
        problem = f"{links} links cannot stand on {on} hosts so"
        mend = "Give each host a link, and no other one more than --busiest."
        raise InvalidInput("hosts", problem, mend) from None


def _document(found: Forecast) -> dict[str, object]:
    least = found.least
    return {
        "links": least.links,
        "hosts": least.hosts,
        "concurrency": found.pace.concurrency,
        "mean_seconds": found.pace.mean_service.total_seconds(),
        "cooldown_seconds": found.pace.cooldown.total_seconds(),
        "total_work_seconds": least.work.total_seconds(),
        "shared_seconds": least.shared.total_seconds(),
        "busiest_host": least.busiest_host,
        "busiest_links": least.busiest_links,
        "busiest_seconds": least.busiest.total_seconds(),
        "bound_seconds": least.makespan.total_seconds(),
        "makespan_seconds": {name: time.total_seconds() for name, time in found.makespans.items()},
        "in_time": found.in_time,
        "fits_window": found.fits_window,
        "days": found.days.days if found.days is not None else None,
        "links_a_day": found.days.links_a_day if found.days is not None else None,
        "busiest_a_day": found.days.busiest_a_day if found.days is not None else None,
        "needed_allowance": dict(found.needed_allowance),
    }


def _print_forecast(found: Forecast) -> None:
    least, pace = found.least, found.pace
    say(f"{least.links} links on {least.hosts} hosts, {pace.concurrency} visits at once")
    mean, rest = pace.mean_service.total_seconds(), pace.cooldown.total_seconds()
    say(f"total work    {_hours(least.work)}; shared by {pace.concurrency} slots {_hours(least.shared)}")
    agreed = f", {least.busiest_chains} at once" if least.busiest_chains > 1 else ""
    visits = f"{least.busiest_links} x ({mean:g} + {rest:g}) s{agreed}"
    say(f"busiest host  {_hours(least.busiest)}: {least.busiest_host}, {visits}")
    say(f"bound         {_hours(least.makespan)}: no polite order is done sooner")
    _print_orders(found.makespans, least.makespan)
    say(f"done by 09:30: {_yes(found.in_time)}; within the run's 6 hours: {_yes(found.fits_window)}")
    if not found.fits_window:
        _print_mends(found)


def _print_orders(makespans: Mapping[str, timedelta], least: timedelta) -> None:
    print_table(
        ("ORDER", "SIMULATED", "TIMES THE BOUND"),
        ((name, _hours(took), f"{took / least:.2f}") for name, took in makespans.items()),
    )


def _print_mends(found: Forecast) -> None:
    if found.days is not None:
        plan = found.days
        say(
            f"it would fit if spread over {plan.days} days by a due-time index: at most {plan.links_a_day} links, "
            f"{plan.busiest_a_day} of the busiest host, a day"
        )
        if plan.days > 7:
            say("that is more than a week: each link would be checked less often than weekly")
    for host, needed in found.needed_allowance.items():
        say(f"or, if its owner agrees, with {needed} visits at once on {host}")
    if found.needs_more_slots is not None:
        say(f"and, for all hosts together, with {found.needs_more_slots} visits at once")


def _yes(it_is: bool) -> str:
    return "yes" if it_is else "no"


def _hours(time: timedelta) -> str:
    seconds = time.total_seconds()
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"
