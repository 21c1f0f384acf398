"""`linkwatch status`: services watched every minute, beside the weekly links (SPEC 13)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from linkwatch_pipeline.entrypoints.cli.opening import home_folder, open_app
from linkwatch_pipeline.entrypoints.cli.output import note, print_json, print_table, say
from linkwatch_pipeline.entrypoints.cli.values import as_json

if TYPE_CHECKING:
    from linkwatch_pipeline.status_bootstrap import StatusApp
    from linkwatch_pipeline.use_cases.monitor_services import CycleReport

LONGEST_NAME = 40  # characters, in the table


@click.group()
def status() -> None:
    """Watch services every minute: DATABASE_URL, REDIS_URL and SQS_QUEUE_URL say where they are."""


@status.command()
@click.option("--once", is_flag=True, help="One cycle now, all of it written, and the end.")
@click.pass_context
def run(context: click.Context, once: bool) -> int:
    """Check every active service each minute, and write what was seen, until interrupted."""
    with _opened(context, queue_wait_seconds=1 if once else 5) as app, _alone(context):
        if once:
            report = asyncio.run(_once(app))
            _tell(report)
            return 0 if _all_written(app) and report.is_fine else 1
        asyncio.run(_until_stopped(app))
        return 0


@status.command()
@click.pass_context
def tell(context: click.Context) -> int:
    """Bring changes of services into the outbox (STATUS_NOTICES=on); 'linkwatch deliver' sends them."""
    from linkwatch_pipeline.domain.errors import ConfigurationError

    with _opened(context) as app:
        if app.outbox is None:
            raise ConfigurationError("STATUS_NOTICES is not set to on, so no change is written for telling.")
        say(f"{app.tell()} told to the outbox; 'linkwatch deliver' sends them")
        return 0


@status.command()
@click.option("--user", "user_id", metavar="ID", help="Only the services of this user.")
@click.option("--history", "service_id", metavar="SERVICE", help="One service's statuses of the last 24 hours.")
@as_json
@click.pass_context
def show(context: click.Context, user_id: str | None, service_id: str | None, as_json: bool) -> int:
    """Tell how services are: from Redis, else their newest row, else UNKNOWN."""
    if user_id is not None and service_id is not None:
        raise click.UsageError("give --user or --history, not both.", context)
    with _opened(context) as app:
        if service_id is not None:
            return _print_history(app, service_id, as_json)
        return _print_statuses(app, user_id, as_json)


@contextmanager
def _alone(context: click.Context) -> Iterator[None]:
    """Be the one process that watches services from this home. Raises AlreadyRunning."""
    from linkwatch_pipeline.adapters.run_lock import hold_run_lock
    from linkwatch_pipeline.bootstrap import new_worker

    def nothing_is_left_of(worker: str) -> None:
        """A dead predecessor held no host; its cycle is over."""

    with hold_run_lock(home_folder(context) / "status.lock", worker=new_worker("status"), bury=nothing_is_left_of):
        yield


@contextmanager
def _opened(context: click.Context, *, queue_wait_seconds: int = 0) -> Iterator[StatusApp]:
    """The status parts under the home's policy and contact, closed afterwards."""
    from linkwatch_pipeline.bootstrap import user_agent
    from linkwatch_pipeline.settings import load_status_settings
    from linkwatch_pipeline.status_bootstrap import build_status_app, check_status_settings

    settings = load_status_settings(os.environ, needs=("DATABASE_URL", "REDIS_URL"))
    check_status_settings(settings)  # before a home is made
    with open_app(context, if_unfinished=None) as home:
        app = build_status_app(
            settings,
            policy=home.policy,
            user_agent=user_agent(home.settings.contact),
            clock=home.clock,
            queue_wait_seconds=queue_wait_seconds,
            outbox=home.store if settings.notices else None,
        )
        try:
            yield app
        finally:
            app.close()


async def _once(app: StatusApp) -> CycleReport:
    from linkwatch_pipeline.use_cases.keep_status import one_cycle

    async with app.both_halves() as halves:
        return await one_cycle(halves)


async def _until_stopped(app: StatusApp) -> None:
    """Until SIGINT (which raises KeyboardInterrupt) or SIGTERM (which ends well), with everything seen written."""
    from linkwatch_pipeline.use_cases.keep_status import keep_status

    async with app.both_halves() as halves:
        keeping = asyncio.ensure_future(keep_status(halves, _tell))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, keeping.cancel)
        try:
            await keeping
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is not None and me.cancelling():  # SIGINT
                raise
        finally:
            if not keeping.done():
                keeping.cancel()
                await asyncio.wait({keeping})
            _all_written(app)


def _all_written(app: StatusApp) -> bool:
    """Whether nothing is left in this process's own queue; says so if there is."""
    if left := len(app.memory_queue):
        note(f"{left} statuses could not be written and end with this process")
    return not left


def _tell(report: CycleReport) -> None:
    """One line a cycle; what is not fine on stderr as well."""
    from linkwatch_pipeline.domain.timestamps import format_seconds

    took = report.took.total_seconds()
    counts = f"{report.services} services: {report.up} up, {report.down} down"
    say(f"{format_seconds(report.began_at)}  {counts}, {took:.1f} s")
    for trouble in _troubles(report):
        note(trouble)


def _troubles(report: CycleReport) -> list[str]:
    counted: list[tuple[int, Callable[[int], str]]] = [
        (report.skipped, lambda n: f"late: {n} cycles went by while the one before was still at work"),
        (report.left_out, lambda n: f"{n} services were left out for want of time"),
        (report.unsent, lambda n: f"{n} statuses were not taken by the queue"),
        (report.faults, lambda n: f"{n} services could not be checked, by a fault of this machine"),
    ]
    troubles = [words(number) for number, words in counted if number]
    return [*troubles, *(["the database does not answer; the services are the last known"] * report.from_memory)]


def _print_statuses(app: StatusApp, user_id: str | None, as_json: bool) -> int:
    from linkwatch_pipeline.entrypoints.cli.status_documents import shown_status_document
    from linkwatch_pipeline.use_cases.show_status import show_statuses

    view = show_statuses(app.directory, app.cache, app.directory, user_id=user_id)
    now = app.clock.now()
    if view.problem is not None:
        note(f"{view.problem}; statuses are from PostgreSQL")
    if as_json:
        print_json([shown_status_document(shown, now=now) for shown in view.statuses])
        return 0
    rows = []
    for shown in view.statuses:
        document = shown_status_document(shown, now=now)
        document["name"] = _clipped(shown.service.name)
        rows.append([document[name] for name in ("service_id", "name", "status", "response_time", "age_s", "url")])
    print_table(["SERVICE", "NAME", "STATUS", "LATENCY MS", "AGE S", "URL"], rows)
    return 0


def _clipped(name: str) -> str:
    """One long name must not push every other column off the screen."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _print_history(app: StatusApp, service_id: str, as_json: bool) -> int:
    from linkwatch_pipeline.entrypoints.cli.status_documents import seen_status_document
    from linkwatch_pipeline.use_cases.show_status import show_history

    documents = [seen_status_document(seen) for seen in show_history(app.directory, service_id, now=app.clock.now())]
    if as_json:
        print_json(documents)
    else:
        print_table(
            ["CHECKED AT", "STATUS", "LATENCY MS"],
            [(d["checked_at"], d["status"], d["response_time"]) for d in documents],
        )
    return 0
