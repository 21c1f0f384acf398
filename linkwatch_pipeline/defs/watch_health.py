"""Is linkwatch well? The sensor looks every five minutes and beats its heart; the asset keeps what it found."""

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import table
from linkwatch_pipeline.domain.health import is_healthy
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.use_cases.watch_health import watch_health


@dg.asset(
    group_name="health",
    kinds={"python"},
    owners=["team:data-engineering"],
    required_resource_keys={"app"},
)
def run_health(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """What is not well with linkwatch itself: one row per finding, the worst first."""
    app: App = context.resources.app
    findings = watch_health(app.store, app.metrics, clock=app.clock)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(findings),
            "healthy": is_healthy(findings),
            "findings": table(
                {"severity": "", "code": "", "subject": "", "detail": "", "since": "UTC"},
                [(f.severity, f.code, f.subject, f.detail, format_seconds(f.since)) for f in findings],
            ),
        }
    )


run_health_job = dg.define_asset_job("watch_health", selection=[run_health], description="Record the verdict.")


@dg.sensor(
    job=run_health_job,
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={"app"},
)
def health_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Looks and beats within its own tick; asks for a run only when the verdict changed, and once a day."""
    app: App = context.resources.app
    findings = watch_health(app.store, app.metrics, clock=app.clock)
    verdict = f"{app.clock.now():%Y-%m-%d} " + ",".join(sorted(f"{f.code}:{f.subject}" for f in findings))
    if verdict == context.cursor:
        return dg.SkipReason(f"unchanged: {len(findings)} findings")
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{app.clock.now():%Y%m%d%H%M%S}")], cursor=verdict)
