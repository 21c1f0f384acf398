"""`linkwatch inspect` and `outbox`: what is recorded, without changing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.opening import exit_code_of, open_app, warn
from linkwatch_pipeline.entrypoints.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from linkwatch_pipeline.domain.allowances import Allowance
    from linkwatch_pipeline.domain.notices import Notice
    from linkwatch_pipeline.domain.observations import Observation
    from linkwatch_pipeline.use_cases.inspect import History, RunView


@click.command()
@click.argument("link_id", type=values.link_id, required=False)
@click.option("--run", "run_id", metavar="ID", help="A run instead: its summary, its hosts, its transcript.")
@values.as_json
@click.pass_context
def inspect(context: click.Context, link_id: str | None, run_id: str | None, as_json: bool) -> int:
    """Show everything about a link, about all of them, or about a run."""
    from linkwatch_pipeline.entrypoints.cli import documents
    from linkwatch_pipeline.use_cases.damage import Damage
    from linkwatch_pipeline.use_cases.inspect import inspect_links, inspect_run

    if link_id is not None and run_id is not None:
        raise click.UsageError("Give a link or --run, not both.", context)
    damage = Damage()
    with open_app(context, if_unfinished=warn) as app:
        if run_id is not None:
            view = inspect_run(app.store, run_id=run_id, now=app.clock.now(), damaged=damage)
            agreed = app.settings.allowances
            print_json(documents.run_document(view, agreed)) if as_json else _print_run(view, agreed)
            return exit_code_of(damage)
        history = inspect_links(app.store, link_id=link_id, now=app.clock.now(), damaged=damage)
    print_json(documents.history_document(history)) if as_json else _print_history(history)
    return exit_code_of(damage)


@click.command()
@values.as_json
@click.pass_context
def outbox(context: click.Context, as_json: bool) -> int:
    """List the notices and how their delivery stands."""
    from linkwatch_pipeline.entrypoints.cli.documents import notice_document
    from linkwatch_pipeline.use_cases.damage import Damage

    damage = Damage()
    with open_app(context, if_unfinished=warn) as app:
        notices = list(app.store.notices(damaged=damage))
    if as_json:
        print_json([notice_document(notice) for notice in notices])
    else:
        _print_notices(notices)
    return exit_code_of(damage)


def _print_history(history: History) -> None:
    from linkwatch_pipeline.entrypoints.cli.links import print_links

    print_links(lambda: ((link, history.mutes.get(link.id)) for link in history.links))
    say("")
    _print_observations(history.observations)
    say("")
    print_table(
        ("TRANSITION", "FROM", "TO", "AT", "JOB"),
        ((t.id, t.from_state.value, t.to_state.value, t.at, t.job_id) for t in history.transitions),
    )
    say("")
    _print_notices(history.notices)


def _print_observations(observations: Iterable[Observation]) -> None:
    print_table(
        ("OBSERVATION", "AT", "STATUS", "OUTCOME", "REASON", "MS"),
        ((o.job_id, o.observed_at, o.status, o.outcome.value, o.reason, o.latency_ms) for o in observations),
    )


def _print_notices(notices: Iterable[Notice]) -> None:
    print_table(
        ("NOTICE", "STATUS", "ATTEMPTS", "PROVIDER ID", "NEXT ATTEMPT", "LAST ERROR"),
        (
            (n.transition_id, n.status.value, n.attempts, n.provider_id, n.next_attempt_at, n.last_error)
            for n in notices
        ),
    )


def _print_run(view: RunView, agreed: Mapping[str, Allowance]) -> None:
    from linkwatch_pipeline.domain.allowances import host_of
    from linkwatch_pipeline.domain.coverage import percent

    run = view.run
    say(f"run {run.run_id}: {run.state.value}, {view.counts.terminal} of {view.counts.expected} jobs ended")
    say(f"coverage {percent(view.coverage)}: " + _counts(view.counts.by_end))
    if run.ruling is not None:
        say(f"notices {run.ruling.kind.value}" + (f": {run.ruling.why}" if run.ruling.why else ""))
    say("")
    print_table(
        ("HOST", "JOBS", "LEFT", "ACTIVE", "NEXT DUE", "DUE FOR", "FIRST", "LAST", "OUTCOMES"),
        (
            (
                h.host,
                h.jobs,
                h.remaining,
                h.active_requests,
                h.next_due_at,
                f"{h.due_for.total_seconds():.0f} s" if h.due_for is not None else None,
                h.first_observed_at,
                h.last_observed_at,
                _counts(h.outcomes),
            )
            for h in view.hosts
        ),
    )
    for name in sorted({host_of(h.host) for h in view.hosts} & set(agreed)):
        say(f"{name}: {agreed[name].visits} visits at once, agreed with {agreed[name].agreed_with}")
    say("")
    print_table(
        ("STARTED", "HOST", "LINK", "STATUS", "OUTCOME", "REASON", "MS"),
        (
            (o.started_at, host, o.link_id, o.status, o.outcome.value, o.reason, o.latency_ms)
            for host, o in view.transcript
        ),
    )


def _counts(by_end: Mapping[str, int]) -> str:
    return ", ".join(f"{end} {count}" for end, count in by_end.items()) or "nothing yet"
