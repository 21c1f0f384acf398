"""Is linkwatch well? The sensor looks every five minutes and beats its heart; the asset keeps what it found."""

from datetime import timedelta
from pathlib import Path

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import column_schema, table
from linkwatch_pipeline.domain.health_findings import Severity
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.use_cases.survey_health import Surveyor

# By home. The process that evaluates sensors lives long, so that not every tick reads all links.
_surveyors: dict[Path, Surveyor] = {}

FINDING_COLUMNS = (
    dg.TableColumn("severity", description="critical makes the verdict unhealthy; a warning can wait"),
    dg.TableColumn("detail"),
    dg.TableColumn("subject", description="the run, notice or week that it is about"),
    dg.TableColumn("since", description="UTC"),
    dg.TableColumn("code", description="the same for the same kind of fault"),
)


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
    """What is not well with linkwatch itself: one row per finding, the worst first. On-call is told what is new."""
    app: App = context.resources.app
    findings = app.look()
    told = app.tell(findings)
    critical = sum(finding.severity is Severity.CRITICAL for finding in findings)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(findings),
            "critical": critical,
            "warnings": len(findings) - critical,
            "alarms_told": told.taken,
            "alarms_waiting_for": ", ".join(told.problems) or "nobody",
            "findings": table(
                FINDING_COLUMNS,
                [(f.severity.value, f.detail, f.subject, format_seconds(f.since), f.code) for f in findings],
            ),
        },
        check_results=[dg.AssetCheckResult(passed=critical == 0, metadata={"critical": critical})],
    )


run_health_job = dg.define_asset_job("watch_health", selection=[run_health], description="Record the verdict.")


def _surveyor_of(app: App) -> Surveyor:
    return _surveyors.setdefault(app.home.folder, Surveyor())


@dg.sensor(
    job=run_health_job,
    minimum_interval_seconds=300,
    description="Looks and beats its heart every five minutes; asks for a run on a new verdict, and once a day.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={"app"},
)
def health_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Looks and beats within its own tick; asks for a run only when the verdict changed, and once a day.

    The run tells on-call, since a tick may not wait for a webhook. It is also asked for when nobody else does that.
    """
    app: App = context.resources.app
    findings = app.look(surveyor=_surveyor_of(app))
    verdict = f"{app.clock.now():%Y-%m-%d} " + ",".join(sorted(f"{f.code}:{f.subject}" for f in findings))
    if verdict == context.cursor and not app.has_to_tell(findings):
        return dg.SkipReason(f"unchanged: {len(findings)} findings")
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{app.clock.now():%Y%m%d%H%M%S}")], cursor=verdict)
