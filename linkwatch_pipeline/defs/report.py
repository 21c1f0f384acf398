"""The week in the warehouse: its Parquet file, and the coverage report, read back with DuckDB."""

import base64
from collections.abc import Sequence

import dagster as dg

from linkwatch_pipeline.adapters.report_formats.html import html_report
from linkwatch_pipeline.adapters.report_formats.writing import write_whole
from linkwatch_pipeline.adapters.reports.outcome_plot import draw_outcomes
from linkwatch_pipeline.adapters.warehouse.schema import COLUMNS as FILE_COLUMNS
from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.pictures import outcome_bars
from linkwatch_pipeline.defs.section_tables import MOST_ROWS, section_tables
from linkwatch_pipeline.defs.tables import Cell, percentage, table
from linkwatch_pipeline.defs.weekly import weekly_freshness, weekly_partitions
from linkwatch_pipeline.domain.coverage import WeekCount, percent
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import week_key
from linkwatch_pipeline.use_cases.export_week import prune_history
from linkwatch_pipeline.use_cases.report import report_week

WEEKS_COMPARED = 26

_WEEK_COLUMNS = (
    dg.TableColumn("week", description="its Monday"),
    dg.TableColumn("run", description="the weekly run's state; empty when the store knows none"),
    dg.TableColumn("coverage", description="jobs of the weekly run with a verdict, of those to be checked"),
    dg.TableColumn("complete", description="jobs of the weekly run that ended, of those expected"),
    dg.TableColumn("observations", "int", "links looked at, each once; empty is no data"),
    *(dg.TableColumn(outcome.value, "int") for outcome in Outcome),
)

# What analysts have to know of the file's columns beyond their names (`domain.observations.Observation`).
_MEANINGS = {
    "job_id": "unique: the run and the link; of a check by hand its sequence and the link",
    "link_id": "the link, by its name in the registry",
    "config_version": "of the link, when it was checked",
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
    "bytes_read": "of the body",
    "content_type": "as the server said",
    "page_hints": "what the page itself says of being no real one",
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
    """The week's observations as a Parquet file, one row per observation, and what they cover.

    The columns are those of the view `observations`: `linkwatch_pipeline.reports.connect()` opens it.
    The tab Partitions shows the numbers, pictures and tables of each week; on Overview they stand below the columns.
    """
    app: App = context.resources.app
    week = context.partition_time_window.start
    with app.shared_warehouse() as warehouse:
        report = report_week(app.store, warehouse, app.reports, week, clock=app.clock, most=MOST_ROWS)
        pruned = prune_history(app.store, warehouse, clock=app.clock)
    page = app.home.report_page(week_key(week))
    write_whole(page, [html_report(report)])
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": report.exported.rows,
            **_shown(report),
            "page": dg.MetadataValue.path(str(page)),
            "folder": dg.MetadataValue.path(str(app.home.warehouse)),
            "file_written_now": report.exported.written,
            "pruned_observations": sum(pruned_week.rows for pruned_week in pruned.weeks),
            "weeks_kept_in_store": table(
                (dg.TableColumn("week"), dg.TableColumn("reason", description="why it could not leave the store")),
                [(week_key(kept), reason) for kept, reason in pruned.kept],
            ),
        }
    )


def _shown(report: CoverageReport) -> dict[str, dg.MetadataValue]:
    """The report for people: pictures, numbers that are plotted over weeks, and tables."""
    week, weeks = report.this_week, report.weeks[:WEEKS_COMPARED]
    counts = {outcome.value: week.count(outcome) or 0 for outcome in Outcome}
    return {
        "outcomes_picture": outcome_bars(counts),
        **_weeks_picture(weeks),
        "coverage_percent": percentage(week.coverage),
        "completeness_percent": percentage(week.completeness),
        **{outcome: dg.MetadataValue.int(count) for outcome, count in counts.items()},
        "links_to_mend": dg.MetadataValue.int(report.score.to_mend),
        "links_newly_broken": dg.MetadataValue.int(report.newly_broken.total),
        "links_still_broken": dg.MetadataValue.int(report.still_broken.total),
        "links_recovered": dg.MetadataValue.int(report.recovered.total),
        "links_uncertain_again": dg.MetadataValue.int(report.repeated_uncertainty.total),
        "links_moved_for_good": dg.MetadataValue.int(report.moved_for_good.total),
        "links_suspected": dg.MetadataValue.int(report.suspected_pages.total),
        "certificates_ending": dg.MetadataValue.int(report.ending_certificates.total),
        **section_tables(report),
        "weeks": table(_WEEK_COLUMNS, map(_week_row, weeks)),
        **({"problems": dg.MetadataValue.text("\n".join(report.problems))} if report.problems else {}),
    }


def _weeks_picture(weeks: Sequence[WeekCount]) -> dict[str, dg.MetadataValue]:
    """The outcomes over the weeks; nothing without the library that draws it: the table says the same."""
    picture = draw_outcomes(weeks)
    if picture is None:
        return {}
    encoded = base64.b64encode(picture).decode()
    return {"weeks_picture": dg.MetadataValue.md(f"![outcomes over the weeks](data:image/png;base64,{encoded})")}


def _week_row(week: WeekCount) -> Sequence[Cell]:
    return (
        week_key(week.week),
        week.run_state or "",
        percent(week.coverage),
        percent(week.completeness),
        week.links_seen,
        *(week.count(outcome) for outcome in Outcome),
    )
