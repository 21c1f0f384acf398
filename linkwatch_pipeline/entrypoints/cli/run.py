"""`linkwatch run` and `resume`: a week through the Dagster assets, in this process, to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from linkwatch_pipeline.domain.errors import InvalidInput, LinkwatchError
from linkwatch_pipeline.entrypoints.cli import values
from linkwatch_pipeline.entrypoints.cli.dagster_home import prepare_dagster
from linkwatch_pipeline.entrypoints.cli.interrupts import call_interruptibly
from linkwatch_pipeline.entrypoints.cli.opening import look_for_half_an_import, open_app
from linkwatch_pipeline.entrypoints.cli.output import note, print_json, print_table, say

if TYPE_CHECKING:
    from linkwatch_pipeline.bootstrap import App
    from linkwatch_pipeline.domain.runs import Run
    from linkwatch_pipeline.ports import Progress

Materialise = Callable[[], None]
T = TypeVar("T")

FIRST_STORY_WEEK = "2026-09-07"


@click.command()
@click.option("--week", metavar="MONDAY", help="Such as 2026-09-28; the current week without it.")
@values.as_json
@click.pass_context
def run(context: click.Context, week: str | None, as_json: bool) -> int:
    """Check every link for a week. Interrupted, the same command goes on where it stopped."""
    from linkwatch_pipeline.domain.timestamps import parse_week

    def chosen(app: App) -> datetime:
        return parse_week(week) if week is not None else _latest_week(app)

    return _run_and_print(context, chosen, as_json)


@click.command()
@click.argument("run_id")
@values.as_json
@click.pass_context
def resume(context: click.Context, run_id: str, as_json: bool) -> int:
    """Go on with a run that stopped. The same as `run` for its week."""
    from linkwatch_pipeline.domain.errors import NotFound

    def chosen(app: App) -> datetime:
        found = app.store.get_run(run_id)
        if found is None:
            raise NotFound(
                f"there is no run {run_id!r}; a run's id is its intended time, such as 2026-09-28T09:00:00Z."
            )
        return found.intended_at

    return _run_and_print(context, chosen, as_json)


def _run_and_print(context: click.Context, week: Callable[[App], datetime], as_json: bool) -> int:
    """Run the week that is chosen once the home is open, with everything in a thread that Ctrl-C does not reach."""
    from linkwatch_pipeline.adapters.event_loop import CoroutineRunner

    coroutines = CoroutineRunner()

    def work() -> int:
        with open_app(context, if_unfinished=None) as opened:
            _require_service(opened)
            app = opened.stopped_by(coroutines)
            return _print_runs(app, run_week(app.with_progress(_progress_line(app)), week(app)), as_json)

    return call_interruptibly(work, stop=coroutines.stop)


def _require_service(app: App) -> None:
    if app.on_aws:
        app.require_service()  # names what is not there; waiting for it would never end
    look_for_half_an_import(app)


def run_week(app: App, intended_at: datetime) -> list[Run]:
    """Materialise a week until nothing of it is left to do: the weekly run and its retry runs, as they ended.

    On AWS an outage of the table or the queue is told and waited out once the run goes on.

    Raises: InvalidInput for a week that has not begun or went by unobserved, AlreadyRunning, StoreError, MissingExtra.
    """
    from linkwatch_pipeline.domain.runs import weekly_run_id
    from linkwatch_pipeline.use_cases.observe_week import current_run, week_runs
    from linkwatch_pipeline.use_cases.start_week import start_week, was_missed

    app = app.in_week(intended_at)
    # All that can refuse comes before anything of the week exists: its start decides which links belong to it.
    app.require_contact()
    app.coroutines.raise_if_stopped()
    prepare_dagster(app.home.dagster)
    # Before Dagster: two processes that set up its storage at once trip over each other.
    with app.sole_runner() as worker:
        outlast = partial(_outlast, app, weekly_run_id(intended_at))
        weekly = outlast(lambda: start_week(app.store, intended_at, now=app.clock.now()))
        if was_missed(weekly):
            raise InvalidInput(
                "week",
                f"{weekly.run_id} was never run and is over: it is recorded as missed",
                "Links cannot be observed in the past; run the current week.",
            )
        for materialise in _materialisations(app, intended_at, worker):
            outlast(materialise)
            weekly = outlast(lambda: start_week(app.store, intended_at, now=app.clock.now()))
            following = outlast(partial(current_run, app.store, weekly))
            if following.state.is_over or following == weekly:
                break
            note(f"some hosts asked for a pause; their links are looked at again in {following.run_id}")
        return outlast(lambda: list(week_runs(app.store, weekly)))


def _outlast(app: App, run_id: str, attempt: Callable[[], T]) -> T:
    """Do it; on AWS again and again as long as table or queue are out. On a laptop no outage ends by itself."""
    if not app.on_aws:
        return attempt()
    from linkwatch_pipeline.bootstrap import outage_words
    from linkwatch_pipeline.entrypoints.cli.outlast import outlast

    def look() -> None:
        app.store.verify()
        app.shared_queue.visible()

    def tell_outage(fault: LinkwatchError | None) -> None:
        note(f"{run_id}  {outage_words(fault)}")

    return outlast(attempt, look=look, clock=app.clock, wait=app.coroutines.wait, tell_outage=tell_outage)


def _materialisations(app: App, intended_at: datetime, worker: str) -> Iterator[Materialise]:
    folder = prepare_dagster(app.home.dagster)
    import dagster as dg

    from linkwatch_pipeline.definitions import defs

    job = defs.resolve_job_def("weekly_check")
    key = intended_at.date().isoformat()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    resources = {"app": app, "run_lock": worker}

    def materialise() -> None:
        app.coroutines.raise_if_stopped()
        try:
            job.execute_in_process(partition_key=key, instance=instance, resources=resources, run_config=quiet)
        except Exception as error:
            if (ours := _our_error(error)) is not None:
                raise ours from error
            raise

    with dg.DagsterInstance.from_config(str(folder)) as instance:
        while True:
            yield materialise


def _our_error(error: BaseException | None) -> LinkwatchError | None:
    """What linkwatch itself had to say, inside the wrappings that Dagster put around it."""
    met: set[int] = set()  # Dagster's error is caused by the step's own, which comes about in the context of Dagster's
    while error is not None and not isinstance(error, LinkwatchError):
        if id(error) in met:
            return None
        met.add(id(error))
        error = error.__cause__ or error.__context__
    return error


def _latest_week(app: App) -> datetime:
    """The current week; in a story home, the latest one that it played."""
    from linkwatch_pipeline.domain.timestamps import parse_week, week_start

    if app.home.fixture is None or not app.home.fixture.story:
        return week_start(app.clock.now())
    return max((r.intended_at for r in app.store.runs()), default=parse_week(FIRST_STORY_WEEK))


def _progress_line(app: App) -> Progress:
    from linkwatch_pipeline.entrypoints.cli.progress import ProgressLine

    def expected(run_id: str) -> int:
        found = app.store.get_run(run_id)
        return found.expected or 0 if found is not None else 0

    return ProgressLine(expected)


def _print_runs(app: App, runs: list[Run], as_json: bool) -> int:
    from linkwatch_pipeline.domain.coverage import coverage, percent
    from linkwatch_pipeline.domain.runs import RunState
    from linkwatch_pipeline.entrypoints.cli.documents import run_summary
    from linkwatch_pipeline.use_cases.close_run import run_counts
    from linkwatch_pipeline.use_cases.dead_letters import letters_of

    counted = [(r, run_counts(app.store, r)) for r in runs]
    if as_json:
        print_json({"week": runs[0].intended_at.date().isoformat(), "runs": [run_summary(r, c) for r, c in counted]})
    else:
        print_table(
            ["run", "state", "jobs", "coverage", "ended"],
            [(r.run_id, r.state.value, c.expected, percent(coverage(c)), _ends(c.by_end.items())) for r, c in counted],
        )
        say("see 'linkwatch inspect --run RUN', 'linkwatch outbox' and 'linkwatch dev'")
    given_up = sum(letter.redriven_as is None for letter in letters_of(app.store, runs))
    unseen = counted[-1][1].by_end.get("expired", 0) + given_up
    return 0 if unseen == 0 and all(r.state is RunState.CLOSED for r in runs) else 1


def _ends(ends: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{end} {count}" for end, count in ends)
