"""The registry of a week: its run, one job per link, a sequence each. Materialising it again adopts what exists."""

from heapq import nsmallest

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import LINK_COLUMNS, LONGEST_TABLE, column_schema, link_table, table
from linkwatch_pipeline.defs.weekly import weekly_freshness, weekly_partitions
from linkwatch_pipeline.domain.runs import Run
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline.use_cases.review_week import summarise_registry
from linkwatch_pipeline.use_cases.start_week import was_missed

MOST_BUSY_HOSTS = 20


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python"},
    owners=["team:data-engineering"],
    metadata={"dagster/column_schema": column_schema(LINK_COLUMNS)},
    freshness_policy=weekly_freshness,
    required_resource_keys={"app"},
)
def link_registry(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Every link that is watched this week, frozen as jobs with their sequences: one row per link.

    `row_count` counts the jobs of the week's run; the table shows the links as they stood when this was
    written, before the week's checks, broken ones first.
    """
    app: App = context.resources.app.in_week(context.partition_time_window.start)
    app.require_contact()
    run = begin_week(app.store, context.partition_time_window.start, now=app.clock.now(), allowances=app.allowances)
    refuse_missed(run)
    chains = app.store.chains(run.run_id)
    busiest = nsmallest(MOST_BUSY_HOSTS, chains, key=lambda chain: (-chain.total, chain.host))
    registry = summarise_registry(app.store, most=LONGEST_TABLE)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": run_counts(app.store, run).expected,
            "links": link_table(registry.links),
            "links_watched": registry.watched,
            **{f"links_{state.value}": count for state, count in registry.by_state.items()},
            "links_without_owner": registry.without_owner,
            "hosts": sum(1 for _ in app.store.chains(run.run_id)),
            "busiest_hosts": table(
                (dg.TableColumn("host"), dg.TableColumn("jobs", "int")), [(c.host, c.total) for c in busiest]
            ),
            "run_id": run.run_id,
            "state": run.state.value,
        }
    )


def refuse_missed(run: Run) -> None:
    """Fail the step for a week that nobody ran: it is recorded as missed, and cannot be observed now."""
    if was_missed(run):
        raise dg.Failure(
            f"The week {run.run_id} was never run and is over: it is recorded as missed. "
            "Links cannot be observed in the past; run the current week.",
            allow_retries=False,
        )
