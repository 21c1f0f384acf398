"""`linkwatch health`: is linkwatch itself well? Apart from Dagster's daemon, so that its silence is noticed too."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.domain.errors import LinkwatchError
from linkwatch_pipeline.domain.redaction import fault_in_our_words
from linkwatch_pipeline.entrypoints.cli.opening import exit_code_of, home_folder, open_app
from linkwatch_pipeline.entrypoints.cli.output import note, print_json, print_table, say
from linkwatch_pipeline.entrypoints.cli.values import as_json

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App
    from linkwatch_pipeline.domain.health_findings import Finding
    from linkwatch_pipeline.use_cases.survey_health import Surveyor
    from linkwatch_pipeline.use_cases.tell_alarms import Told

logger = logging.getLogger(__name__)

LOOK_EVERY = timedelta(minutes=5)


@click.command()
@click.option("--watch", is_flag=True, help="Look every five minutes, and say when the verdict changes.")
@click.option("--watchdog", is_flag=True, help="Only whether 'health --watch' is alive; alarms if it is not.")
@click.option("--history", is_flag=True, help="The weeks that nobody ran, and the runs that were late.")
@as_json
@click.pass_context
def health(context: click.Context, watch: bool, watchdog: bool, history: bool, as_json: bool) -> int:
    """Tell whether anything is wrong with linkwatch itself, on-call too."""
    if watch + watchdog + history > 1:
        raise click.UsageError("give one of --watch, --watchdog and --history.", context)
    if watch and as_json:
        raise click.UsageError("--watch prints sentences; leave --json out.", context)
    with open_app(context, if_unfinished=None) as app:
        if watch:
            asyncio.run(_watch(context, app))
        if history:
            return _print_history(app, as_json)
        if watchdog:
            finding, told = app.watch_the_watcher()
            return _print([finding] if finding is not None else [], told, as_json)
        return _look_once(app, as_json)


def _look_once(app: App, as_json: bool) -> int:
    """On-call is told even if the store cannot serve; the error is then this command's answer."""
    from linkwatch_pipeline.domain.health import failed_look

    try:
        findings = app.look(by_hand=True)
    except LinkwatchError as error:
        _say_problems(app.tell([failed_look(str(error), now=app.clock.now())]))
        raise
    return _print(findings, app.tell(findings), as_json)


async def _watch(context: click.Context, app: App) -> None:
    """Until interrupted. Args: app: the home as it was at first, whose clock goes on and whose alarms are told."""
    from linkwatch_pipeline.domain.timestamps import format_seconds
    from linkwatch_pipeline.use_cases.survey_health import Surveyor

    surveyor = Surveyor()
    before: list[tuple[str, str]] | None = None
    while True:
        findings = _look_anew(context, app, surveyor)
        told = app.tell(findings)
        now = [(finding.code, finding.subject) for finding in findings]
        if now != before:
            say(format_seconds(app.clock.now()))
            _print(findings, told, as_json=False)
        else:
            _say_problems(told)
        before = now
        await app.clock.sleep(LOOK_EVERY)


def _look_anew(context: click.Context, app: App, surveyor: Surveyor) -> Sequence[Finding]:
    """Open the home anew: a database that was replaced meanwhile is not looked at for ever.

    Whatever goes wrong is a finding: the one who watches must not die of what it watches.
    """
    from linkwatch_pipeline.bootstrap import build_app
    from linkwatch_pipeline.domain.health import failed_look

    try:
        with build_app(home_folder(context), env=os.environ) as fresh:
            return fresh.look(surveyor=surveyor)
    except LinkwatchError as error:
        problem = str(error)
    except Exception as fault:
        logger.error("look failed: %s", fault_in_our_words(fault), extra={"action": "watch_health"})
        problem = f"internal fault while looking: {type(fault).__name__}."
    return [failed_look(problem, now=app.clock.now())]


def _print(findings: Sequence[Finding], told: Told, as_json: bool) -> int:
    from linkwatch_pipeline.domain.health import is_healthy
    from linkwatch_pipeline.entrypoints.cli.documents import finding_document

    healthy = is_healthy(findings)
    if as_json:
        print_json({"healthy": healthy, "findings": [finding_document(finding) for finding in findings]})
    else:
        say("healthy" if healthy else "not healthy")
        if findings:
            print_table(
                ["severity", "code", "subject", "since", "detail"],
                [(f.severity.value, f.code, f.subject, f.since, f.detail) for f in findings],
            )
    _say_problems(told)
    return 0 if healthy else 1


def _say_problems(told: Told) -> None:
    for problem in told.problems:
        note(f"on-call is not told yet: {problem}")


def _print_history(app: App, as_json: bool) -> int:
    from linkwatch_pipeline.entrypoints.cli.documents import past_trouble_document
    from linkwatch_pipeline.use_cases.damage import Damage
    from linkwatch_pipeline.use_cases.health_history import past_trouble

    damage = Damage()
    found = list(past_trouble(app.store, now=app.clock.now(), damaged=damage))
    if as_json:
        print_json([past_trouble_document(trouble) for trouble in found])
    elif found:
        print_table(["run", "what", "noticed"], [(t.run_id, t.what.value, t.noticed_at) for t in found])
    else:
        say("every week was run in time" if not damage.records else "every week that can be read was run in time")
    return exit_code_of(damage)
