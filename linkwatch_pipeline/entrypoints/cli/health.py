"""`linkwatch health`: is linkwatch itself well? Apart from Dagster's daemon, so that its silence is noticed too."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.opening import open_app
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say
from linkwatch_pipeline.entrypoints.cli.values import as_json

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App
    from linkwatch_pipeline.domain.health import Finding

LOOK_EVERY = timedelta(minutes=5)


@click.command()
@click.option("--watch", is_flag=True, help="Look every five minutes, and say when the verdict changes.")
@as_json
@click.pass_context
def health(context: click.Context, watch: bool, as_json: bool) -> int:
    """Tell whether anything is wrong with linkwatch itself."""
    from linkwatch_pipeline.use_cases.watch_health import watch_health

    if watch and as_json:
        raise click.UsageError("--watch prints sentences; leave --json out.", context)
    with open_app(context) as app:
        if watch:
            asyncio.run(_watch(app))
        findings = watch_health(app.store, app.metrics, clock=app.clock, breaker=app.breaker)
        return _print(findings, as_json)


async def _watch(app: App) -> None:
    """Until interrupted."""
    from linkwatch_pipeline.domain.timestamps import format_seconds
    from linkwatch_pipeline.use_cases.watch_health import watch_health

    before: list[tuple[str, str]] | None = None
    while True:
        findings = watch_health(app.store, app.metrics, clock=app.clock, breaker=app.breaker)
        now = [(finding.code, finding.subject) for finding in findings]
        if now != before:
            say(format_seconds(app.clock.now()))
            _print(findings, as_json=False)
        before = now
        await app.clock.sleep(LOOK_EVERY)


def _print(findings: tuple[Finding, ...], as_json: bool) -> int:
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
    return 0 if healthy else 1
