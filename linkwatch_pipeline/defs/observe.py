"""The observations of a week: rate-limited checks, grouped in batches of hosts that people can follow."""

from collections.abc import Callable, Iterator

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.pictures import outcome_bars
from linkwatch_pipeline.defs.register import refuse_missed
from linkwatch_pipeline.defs.tables import (
    HOST_COLUMNS,
    column_schema,
    host_table,
    outcome_table,
    pace_table,
    page_list,
    page_table,
    percentage,
    run_numbers,
    run_table,
)
from linkwatch_pipeline.defs.weekly import weekly_partitions
from linkwatch_pipeline.domain.coverage import coverage
from linkwatch_pipeline.domain.outcomes import RULES_VERSION
from linkwatch_pipeline.domain.runs import JobStatus, Run
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run, group_hosts
from linkwatch_pipeline.use_cases.review_week import WeekReview, review_week, slowest_hosts

MOST_SLOW_HOSTS = 20


def _week(context: dg.OpExecutionContext) -> tuple[App, Run]:
    intended_at = context.partition_time_window.start
    app: App = context.resources.app.in_week(intended_at)
    return app, begin_week(app.store, intended_at, now=app.clock.now(), allowances=app.allowances)


@dg.op(
    ins={"link_registry": dg.In(dg.Nothing)},
    out=dg.DynamicOut(list),
    required_resource_keys={"app", "run_lock"},
)
def plan_host_batches(context: dg.OpExecutionContext) -> Iterator[dg.DynamicOutput[list[str]]]:
    """Group the hosts that have work left; no batch at all for a week that is over."""
    app, run = _week(context)
    refuse_missed(run)
    for batch in group_hosts(app.store.chains(run.run_id), app.settings.batches):
        yield dg.DynamicOutput(list(batch.hosts), mapping_key=f"batch_{batch.number:03d}")


@dg.op(required_resource_keys={"app", "run_lock"})
def check_host_batch(context: dg.OpExecutionContext, hosts: list[str]) -> int:
    """Wait until these hosts are done, one request per host at a time; other hosts go on meanwhile.

    In the profile aws other machines do the checks: this sends what is due to them, and logs how far they are.
    """
    app, run = _week(context)
    if not run.state.is_over:
        app.observe(run, hosts, worker=context.resources.run_lock, tell=_teller(context, app))
    context.log.info(f"{len(hosts)} hosts done, {run.run_id}")
    return len(hosts)


@dg.op(required_resource_keys={"app", "run_lock"})
def close_week(context: dg.OpExecutionContext, batches: list[int]) -> dg.MaterializeResult[None]:
    """Close the run if it is over, and say how the week went: as closed, or as it stands."""
    app, run = _week(context)
    run = finish_run(app.store, run.run_id, now=app.clock.now())
    review = review_week(app.store, run.intended_at)
    if review is None:
        raise LookupError(f"run {run.run_id} is not in the store")
    _tell(context.log, review)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": review.weekly.counts.terminal,
            "coverage_percent": percentage(coverage(review.weekly.counts)),
            "outcomes_picture": outcome_bars(review.weekly.counts.by_end),
            "outcomes": outcome_table(review.weekly.counts),
            "links_in_trouble": len(review.troubled),
            "pages_in_trouble": page_table(review.troubled),
            "pages": page_list(review.troubled),
            "hosts": host_table(c for summary in review.runs for c in app.store.chains(summary.run.run_id)),
            "slowest_hosts": pace_table(slowest_hosts(review.paces.values(), most=MOST_SLOW_HOSTS)),
            "runs": run_table(review.runs),
            **run_numbers(review.weekly.run, review.weekly.counts),
            "batches": len(batches),
        }
    )


def _teller(context: dg.OpExecutionContext, app: App) -> Callable[[str], None]:
    """Tells of progress where people may be watching: Dagster's log, and the terminal of `linkwatch run`."""

    def tell(text: str) -> None:
        context.log.info(text)
        app.progress.note(text)

    return tell


def _tell(log: dg.DagsterLogManager, review: WeekReview) -> None:
    for summary in review.runs:
        run, counts = summary.run, summary.counts
        log.info(f"run {run.run_id} is {run.state.value}: {counts.terminal} of {counts.expected} jobs ended")
        expired = counts.by_end.get(JobStatus.EXPIRED.value, 0)
        if expired:
            log.warning(f"{expired} jobs of run {run.run_id} expired: their links were not observed in it")


@dg.graph_asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python", "http"},
    owners=["team:data-engineering"],
    metadata={"dagster/column_schema": column_schema(HOST_COLUMNS)},
    code_version=f"rules-{RULES_VERSION}",
    ins={"link_registry": dg.AssetIn(dagster_type=dg.Nothing)},
)
def observation_batches(link_registry):  # type: ignore[no-untyped-def]  # Dagster reads the graph from the bare call
    """What was observed this week, one row per host: jobs, outcomes, active interval, next due.

    The numbers are those of the weekly run. Links that were throttled are looked at again in retry runs, which the
    table `runs` shows. The code version is that of the rules by which answers are judged.
    """
    return close_week(plan_host_batches(link_registry).map(check_host_batch).collect())
