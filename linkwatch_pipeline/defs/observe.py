"""The observations of a week: rate-limited checks, grouped in batches of hosts that people can follow."""

from collections.abc import Iterator

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.register import refuse_missed
from linkwatch_pipeline.defs.tables import host_table, run_numbers
from linkwatch_pipeline.defs.weekly import weekly_partitions
from linkwatch_pipeline.domain.runs import Run
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run, group_hosts


def _week(context: dg.OpExecutionContext) -> tuple[App, Run]:
    intended_at = context.partition_time_window.start
    app: App = context.resources.app.in_week(intended_at)
    return app, begin_week(app.store, intended_at, now=app.clock.now())


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
    """Work until these hosts are done, one request per host at a time; other hosts go on meanwhile."""
    app, run = _week(context)
    if not run.state.is_over:
        app.observe(run, hosts, worker=context.resources.run_lock)
    context.log.info(f"{len(hosts)} hosts done, {run.run_id}")
    return len(hosts)


@dg.op(required_resource_keys={"app", "run_lock"})
def close_week(context: dg.OpExecutionContext, batches: list[int]) -> dg.MaterializeResult[None]:
    """Close the run if it is over, and say how it went: as closed, or as it stands."""
    app, run = _week(context)
    run = finish_run(app.store, run.run_id, now=app.clock.now())
    counts = run_counts(app.store, run)
    context.log.info(f"run {run.run_id} is {run.state.value}: {counts.terminal} of {counts.expected} jobs ended")
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": counts.terminal,
            **run_numbers(run, counts),
            "hosts": host_table(app.store.chains(run.run_id)),
            "batches": len(batches),
        }
    )


@dg.graph_asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python"},
    owners=["team:data-engineering"],
    ins={"link_registry": dg.AssetIn(dagster_type=dg.Nothing)},
)
def observation_batches(link_registry):  # type: ignore[no-untyped-def]  # Dagster reads the graph from the bare call
    """What was observed this week, one row per host: jobs, outcomes, active interval, next due."""
    return close_week(plan_host_batches(link_registry).map(check_host_batch).collect())
