"""Telling owners: the sensor looks for notices that are due, the asset sends them."""

from collections import Counter
from datetime import timedelta

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import NOTICE_COLUMNS, column_schema, notice_table
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import due_notices

SHOWN_FOR = timedelta(days=30)


@dg.asset(
    group_name="notices",
    kinds={"python", "email"},
    owners=["team:data-engineering"],
    deps=["outbox"],
    metadata={"dagster/column_schema": column_schema(NOTICE_COLUMNS)},
    required_resource_keys={"app"},
)
def deliveries(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """One attempt for each notice that is due; `sent` means accepted by the provider.

    The table shows where every notice of the last 30 days, or still unsettled, stands now, the newest first.
    """
    app: App = context.resources.app
    report = app.deliver()
    since = app.clock.now() - SHOWN_FOR
    known = app.store.notices(damaged=Damage())
    notices = [n for n in known if not n.status.is_settled or (n.sent_at or n.created_at) >= since]
    standing = Counter(notice.status for notice in notices)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": report.sent,
            "sent": report.sent,
            "notices": notice_table(reversed(notices)),
            "retried_later": report.retried,
            "failed": report.failed,
            "unknown": report.unknown,
            "without_owner": report.without_owner,
            "muted": report.muted,
            "discarded": report.discarded,
            "damaged": report.damaged,
            "held": standing[NoticeStatus.HELD],
            "still_unsettled": sum(standing[status] for status in NoticeStatus if not status.is_settled),
        }
    )


deliver_notices_job = dg.define_asset_job(
    "deliver_notices", selection=[deliveries], description="Send every notice that is due."
)


@dg.sensor(
    job=deliver_notices_job,
    minimum_interval_seconds=60,
    description="Asks for a delivery when a notice is due.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={"app"},
)
def outbox_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """The outbox itself decides what is sent: this only wakes somebody."""
    app: App = context.resources.app
    try:
        app.require_mailer()
    except ConfigurationError as why:  # somebody else delivers; told each minute, since nothing else here would show it
        return dg.SkipReason(str(why))
    app.prepare_delivery()
    now = app.clock.now()
    due = due_notices(app.store, now=now)
    if not due:
        unsettled = sum(1 for _ in app.store.notices(unsettled_only=True, damaged=Damage()))
        return dg.SkipReason(f"0 of {unsettled} unsettled notices are due")
    # A run key is used up even by a failed run, so it carries the attempt and the minute.
    first = due[0]
    key = f"{first.transition_id}:{first.attempts}:{len(due)}:{now:%Y%m%d%H%M}"
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=key)])
