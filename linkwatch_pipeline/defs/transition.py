"""What changed in a week, and who is to be told: both were committed with their observations, and are shown here."""

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import (
    CHANGE_COLUMNS,
    NOTICE_COLUMNS,
    change_list,
    change_table,
    column_schema,
    notice_table,
)
from linkwatch_pipeline.defs.weekly import weekly_partitions
from linkwatch_pipeline.domain.links import LinkState
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.use_cases.review_week import changes_of_week, notices_of_week


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python"},
    owners=["team:data-engineering"],
    deps=["observation_batches"],
    metadata={"dagster/column_schema": column_schema(CHANGE_COLUMNS)},
    required_resource_keys={"app"},
)
def state_transitions(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Every link that broke or came back this week: one row per meaningful change of state."""
    app: App = context.resources.app
    changes = changes_of_week(app.store, context.partition_time_window.start)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(changes),
            "newly_broken": sum(change.to_state is LinkState.BROKEN for change, _ in changes),
            "recovered": sum(change.from_state is LinkState.BROKEN for change, _ in changes),
            "transitions": change_table(changes),
            "pages": change_list(changes),
        }
    )


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python"},
    owners=["team:data-engineering"],
    deps=["state_transitions"],
    metadata={"dagster/column_schema": column_schema(NOTICE_COLUMNS)},
    required_resource_keys={"app"},
)
def outbox(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """The notices of this week's transitions, and how far each had come when this was written: one row per notice.

    They are sent afterwards, by `deliveries`, which shows where they stand now.
    """
    app: App = context.resources.app
    week = context.partition_time_window.start
    app.in_week(week).prepare_delivery()
    notices = notices_of_week(app.store, week)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(notices),
            "pending": sum(notice.status is NoticeStatus.PENDING for notice in notices),
            "held": sum(notice.status is NoticeStatus.HELD for notice in notices),
            "muted": sum(notice.status is NoticeStatus.MUTED for notice in notices),
            "unsettled": sum(not notice.status.is_settled for notice in notices),
            "notices": notice_table(notices),
        }
    )
