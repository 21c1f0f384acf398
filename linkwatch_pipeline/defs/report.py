"""The week in the warehouse: its Parquet file, and what its outcomes were, read back with DuckDB."""

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import table
from linkwatch_pipeline.defs.weekly import weekly_partitions
from linkwatch_pipeline.use_cases.export_week import export_week, prune_history


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"duckdb", "parquet"},
    owners=["team:data-engineering"],
    deps=["outbox"],
    required_resource_keys={"app"},
)
def coverage_report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """The week's observations as a Parquet file, and how their outcomes are distributed."""
    app: App = context.resources.app
    week = context.partition_time_window.start
    exported = export_week(app.store, app.warehouse, week, clock=app.clock)
    pruned = prune_history(app.store, app.warehouse, clock=app.clock)
    outcomes = app.warehouse.outcome_distribution(week)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": exported.rows,
            "file_written_now": exported.written,
            "pruned_observations": sum(pruned_week.rows for pruned_week in pruned.weeks),
            "outcomes": table({"outcome": "", "observations": ""}, list(outcomes.items())),
        }
    )
