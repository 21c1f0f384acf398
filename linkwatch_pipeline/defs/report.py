"""The week in the warehouse: its Parquet file, and what its outcomes were, read back with DuckDB."""

from datetime import datetime
from itertools import islice

import dagster as dg

from linkwatch_pipeline.adapters.warehouse.parquet import COLUMNS as FILE_COLUMNS
from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.pictures import outcome_bars
from linkwatch_pipeline.defs.tables import Cell, table
from linkwatch_pipeline.defs.weekly import weekly_freshness, weekly_partitions
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.timestamps import week_key
from linkwatch_pipeline.use_cases.export_week import export_week, prune_history

WEEKS_COMPARED = 13

# What analysts have to know of the file's columns beyond their names (`domain.observations.Observation`).
_MEANINGS = {
    "job_id": "unique: the run and the link; of a check by hand its sequence and the link",
    "run_id": "empty for a hand check",
    "url": "as it was checked",
    "sequence": "unique with link_id; history is in this order",
    "rules_version": "the rules by which the answer was judged",
    "retry_of": "the throttled job that this one looked at again",
    "started_at": "UTC",
    "observed_at": "UTC",
    "status": "HTTP status, empty without a usable answer",
    "outcome": "what the answer means: reachable, broken, throttled, uncertain, content_changed",
    "reason": "why it is not reachable",
    "content_hash": "SHA-256 of the bytes read",
    "content_complete": "false when the page was cut at 64 KiB",
    "marker_found": "empty when no text was expected or the answer was no 2xx",
    "latency_ms": "network time over all hops",
    "final_url": "where the redirects ended",
    "redirects": "each hop that was followed",
    "tls_not_after": "when the certificate ends (UTC)",
}
_FILE_SCHEMA = dg.TableSchema(
    columns=[
        *(dg.TableColumn(name, type=kind, description=_MEANINGS.get(name)) for name, kind in FILE_COLUMNS.items()),
        dg.TableColumn("week", type="DATE", description="the Monday, the same in every row"),
    ]
)


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"duckdb", "parquet"},
    owners=["team:data-engineering"],
    deps=["outbox"],
    metadata={"dagster/column_schema": _FILE_SCHEMA},
    freshness_policy=weekly_freshness,
    required_resource_keys={"app"},
)
def coverage_report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """The week's observations as a Parquet file, one row per observation, and how their outcomes are distributed."""
    app: App = context.resources.app
    week = context.partition_time_window.start
    exported = export_week(app.store, app.warehouse, week, clock=app.clock)
    pruned = prune_history(app.store, app.warehouse, clock=app.clock)
    outcomes = app.warehouse.outcome_distribution(week)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": exported.rows,
            "outcomes_picture": outcome_bars(outcomes),
            "weeks": _weeks_up_to(app, week),
            **{outcome.value: outcomes.get(outcome.value, 0) for outcome in Outcome},
            "folder": dg.MetadataValue.path(str(app.home.warehouse)),
            "file_written_now": exported.written,
            "pruned_observations": sum(pruned_week.rows for pruned_week in pruned.weeks),
            "weeks_kept_in_store": table(
                (dg.TableColumn("week"), dg.TableColumn("reason", description="why it could not leave the store")),
                [(week_key(kept), reason) for kept, reason in pruned.kept],
            ),
        }
    )


def _weeks_up_to(app: App, week: datetime) -> dg.TableMetadataValue:
    """The latest weeks side by side, this one first."""
    weeks = sorted((e.week for e in app.store.exported_weeks() if e.week <= week), reverse=True)
    numbers = (dg.TableColumn(name, "int") for name in ("observations", *(outcome.value for outcome in Outcome)))
    rows: list[tuple[Cell, ...]] = []
    for compared in islice(weeks, WEEKS_COMPARED):
        outcomes = app.warehouse.outcome_distribution(compared)
        counts = [outcomes.get(outcome.value, 0) for outcome in Outcome]
        rows.append((week_key(compared), sum(counts), *counts))
    return table((dg.TableColumn("week", description="its Monday"), *numbers), rows)
