"""Telling owners: the sensor looks for notices that are due, the asset sends them."""

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.domain.notices import is_claimable


@dg.asset(
    group_name="notices",
    kinds={"python"},
    owners=["team:data-engineering"],
    deps=["outbox"],
    required_resource_keys={"app"},
)
def deliveries(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """One attempt for each notice that is due; `sent` means accepted by the provider."""
    app: App = context.resources.app
    report = app.deliver()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": report.sent,
            "sent": report.sent,
            "retried_later": report.retried,
            "failed": report.failed,
            "unknown": report.unknown,
            "without_owner": report.without_owner,
        }
    )


deliver_notices_job = dg.define_asset_job(
    "deliver_notices", selection=[deliveries], description="Send every notice that is due."
)


@dg.sensor(
    job=deliver_notices_job,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={"app"},
)
def outbox_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Asks for a delivery when a notice is due. The outbox itself decides what is sent: this only wakes somebody."""
    app: App = context.resources.app
    now = app.clock.now()
    due = [n for n in app.store.notices(unsettled_only=True) if is_claimable(n, now)]
    if not due:
        return dg.SkipReason("0 notices are due")
    # A run key is used up even by a failed run, so it carries the attempt and the minute.
    first = due[0]
    key = f"{first.transition_id}:{first.attempts}:{len(due)}:{now:%Y%m%d%H%M}"
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=key)])
