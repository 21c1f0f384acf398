"""What changed in a week, and who is to be told: both were committed with their observations, and are shown here."""

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.tables import table
from linkwatch_pipeline.defs.weekly import weekly_partitions
from linkwatch_pipeline.domain.timestamps import WEEK, format_seconds


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python"},
    owners=["team:data-engineering"],
    deps=["observation_batches"],
    required_resource_keys={"app"},
)
def state_transitions(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Every link that broke or came back this week: one row per meaningful change of state."""
    app: App = context.resources.app
    start = context.partition_time_window.start
    rows = [t for t in app.store.transitions() if start <= t.at < start + WEEK]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "newly_broken": sum(t.to_state == "broken" for t in rows),
            "recovered": sum(t.from_state == "broken" for t in rows),
            "transitions": table(
                {"transition": "link:version", "link": "", "from": "", "to": "", "sequence": "", "at": "UTC"},
                [(t.id, t.link_id, t.from_state, t.to_state, t.sequence, format_seconds(t.at)) for t in rows],
            ),
        }
    )


@dg.asset(
    partitions_def=weekly_partitions,
    group_name="weekly",
    kinds={"python"},
    owners=["team:data-engineering"],
    deps=["state_transitions"],
    required_resource_keys={"app"},
)
def outbox(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """The notices of this week's transitions, and how far each has come: one row per notice."""
    app: App = context.resources.app
    start = context.partition_time_window.start
    rows = [n for n in app.store.notices() if start <= n.observed_at < start + WEEK]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "unsettled": sum(not n.status.is_settled for n in rows),
            "notices": table(
                {"transition": "", "link": "", "owner": "", "status": "", "attempts": "", "last_error": ""},
                [(n.transition_id, n.link_id, n.owner, n.status, n.attempts, n.last_error) for n in rows],
            ),
        }
    )
