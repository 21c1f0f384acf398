"""Is linkwatch well? The sensor looks every five minutes and beats its heart; the asset keeps what it found."""

from datetime import timedelta

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import column_schema, table
from linkwatch_pipeline.domain.health import Finding, Severity
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.use_cases.review_week import latest_week
from linkwatch_pipeline.use_cases.watch_health import watch_health

FINDING_COLUMNS = (
    dg.TableColumn("severity", description="critical makes the verdict unhealthy; a warning can wait"),
    dg.TableColumn("detail"),
    dg.TableColumn("subject", description="the run, notice or week that it is about"),
    dg.TableColumn("since", description="UTC"),
    dg.TableColumn("code", description="the same for the same kind of fault"),
)


def _look(app: App) -> tuple[Finding, ...]:
    """All findings, as of now; in a story home as of its last week, since nobody runs the weeks after the story."""
    week = latest_week(app.store)
    app = app.in_week(week) if week is not None else app
    return watch_health(app.store, app.metrics, clock=app.clock, breaker=app.breaker)


@dg.asset(
    group_name="health",
    kinds={"python"},
    owners=["team:data-engineering"],
    metadata={"dagster/column_schema": column_schema(FINDING_COLUMNS)},
    # The sensor asks for it at least once a day: when it grows old, nobody is watching.
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=25)),
    check_specs=[
        dg.AssetCheckSpec("nothing_is_critical", asset="run_health", description="No finding needs somebody now.")
    ],
    required_resource_keys={"app"},
)
def run_health(context: dg.AssetExecutionContext) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it bare
    """What is not well with linkwatch itself: one row per finding, the worst first."""
    findings = _look(context.resources.app)
    critical = sum(finding.severity is Severity.CRITICAL for finding in findings)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(findings),
            "critical": critical,
            "warnings": len(findings) - critical,
            "findings": table(
                FINDING_COLUMNS,
                [(f.severity.value, f.detail, f.subject, format_seconds(f.since), f.code) for f in findings],
            ),
        },
        check_results=[dg.AssetCheckResult(passed=critical == 0, metadata={"critical": critical})],
    )


run_health_job = dg.define_asset_job("watch_health", selection=[run_health], description="Record the verdict.")


@dg.sensor(
    job=run_health_job,
    minimum_interval_seconds=300,
    description="Looks and beats its heart every five minutes; asks for a run on a new verdict, and once a day.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={"app"},
)
def health_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Looks and beats within its own tick; asks for a run only when the verdict changed, and once a day."""
    app: App = context.resources.app
    findings = _look(app)
    verdict = f"{app.clock.now():%Y-%m-%d} " + ",".join(sorted(f"{f.code}:{f.subject}" for f in findings))
    if verdict == context.cursor:
        return dg.SkipReason(f"unchanged: {len(findings)} findings")
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{app.clock.now():%Y%m%d%H%M%S}")], cursor=verdict)
