"""The last day of the services that are watched each minute, from PostgreSQL. The watching itself is not Dagster's."""

import os
from collections.abc import Sequence

import dagster as dg

from linkwatch_pipeline.bootstrap import App, user_agent
from linkwatch_pipeline.defs.tables import Cell, column_schema, percentage, table
from linkwatch_pipeline.domain.coverage import percent
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.service_status import ServiceDay
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.settings import load_status_settings
from linkwatch_pipeline.status_bootstrap import build_status_app
from linkwatch_pipeline.use_cases.observe_services import ServicesDay, observe_services

COLUMNS = (
    dg.TableColumn("service"),
    dg.TableColumn("name"),
    dg.TableColumn("uptime", description="UP checks over all checks of the last 24 hours; empty is no data"),
    dg.TableColumn("checks", "int"),
    dg.TableColumn("p50_ms", "float", "of the UP checks"),
    dg.TableColumn("p95_ms", "float", "of the UP checks"),
    dg.TableColumn("p99_ms", "float", "of the UP checks"),
    dg.TableColumn("last_checked", description="UTC"),
    dg.TableColumn("user"),
    dg.TableColumn("url"),
)
_FRESH = "statuses_are_fresh"


@dg.asset(
    group_name="service_status",
    kinds={"postgresql"},
    owners=["team:data-engineering"],
    metadata={"dagster/column_schema": column_schema(COLUMNS)},
    check_specs=[
        dg.AssetCheckSpec(_FRESH, asset="service_uptime", description="Each active service was checked lately.")
    ],
    required_resource_keys={"app"},
)
def service_uptime(context: dg.AssetExecutionContext) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it bare
    """Uptime and latencies of each active service over the last 24 hours, the least reliable first.

    Without DATABASE_URL it says what to set: service status is watched only where somebody runs it.
    """
    app: App = context.resources.app
    try:
        day = _observe(app)
    except ConfigurationError as missing:
        told = dg.MetadataValue.text(str(missing))
        return dg.MaterializeResult(
            metadata={"dagster/row_count": 0, "not_set_up": told},
            check_results=[dg.AssetCheckResult(check_name=_FRESH, passed=True, metadata={"not_set_up": told})],
        )
    stale = [shown.service.name or shown.service.id for shown in day.stale]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(day.days),
            "uptime_percent": percentage(day.uptime),
            "checks": day.checks,
            "services": table(COLUMNS, map(_row, day.days)),
        },
        check_results=[
            dg.AssetCheckResult(
                check_name=_FRESH,
                passed=not stale,
                severity=dg.AssetCheckSeverity.WARN,
                metadata={"stale": len(stale), "services": ", ".join(stale[:20])},
            )
        ],
    )


service_status_job = dg.define_asset_job(
    "observe_services", selection=[service_uptime], description="Look at the last day of the services."
)
service_status_schedule = dg.ScheduleDefinition(
    name="service_status_schedule",
    job=service_status_job,
    cron_schedule="5 * * * *",
    execution_timezone="UTC",
    description="Every hour; switch it on where service status is watched.",
    default_status=dg.DefaultScheduleStatus.STOPPED,
)


def _observe(app: App) -> ServicesDay:
    settings = load_status_settings(os.environ, needs=("DATABASE_URL",))
    agent = user_agent(app.settings.contact)
    status_app = build_status_app(settings, policy=app.policy, user_agent=agent, clock=app.clock)
    try:
        return observe_services(status_app.directory, now=app.clock.now())
    finally:
        status_app.close()


def _row(day: ServiceDay) -> Sequence[Cell]:
    return (
        day.service.id,
        day.service.name,
        percent(day.uptime) if day.uptime is not None else "",
        day.checks,
        _rounded(day.latency_p50),
        _rounded(day.latency_p95),
        _rounded(day.latency_p99),
        format_seconds(day.last_checked_at) if day.last_checked_at is not None else "",
        day.service.user_id,
        redacted_url(day.service.url),
    )


def _rounded(value: float | None) -> float | None:
    return round(value, 2) if value is not None else None
