"""When: weekly partitions whose window begins at the intended time, the one job over them, and its schedule."""

from datetime import timedelta

import dagster as dg

from linkwatch_pipeline.domain.timestamps import WEEK, week_key

# A partition's key is its Monday; its window starts at the intended time of the run (2026-09-28T09:00Z). `end_offset`
# makes the week that has just begun the newest partition, since it is the one to observe.
weekly_partitions = dg.WeeklyPartitionsDefinition(
    start_date="2026-09-07", day_offset=1, hour_offset=9, timezone="UTC", end_offset=1
)

# A light in the UI, no more: it looks at the last materialisation of any week. The alarm is `run_health`.
weekly_freshness = dg.FreshnessPolicy.time_window(fail_window=WEEK + timedelta(hours=3))

# Dagster's queue keeps runs with this tag apart (dagster.yaml); the lock that holds is the home's own.
WEEKLY_TAGS = {"linkwatch/kind": "weekly"}

weekly_check = dg.define_asset_job(
    "weekly_check",
    selection=dg.AssetSelection.groups("weekly"),
    tags=WEEKLY_TAGS,
    description="One week: registry, observations, transitions, outbox, report. Runs again without harm; resumes.",
)


@dg.schedule(
    job=weekly_check,
    cron_schedule="0 9 * * 1",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every Monday 09:00 UTC, the week that begins then.",
)
def weekly_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    key = week_key(context.scheduled_execution_time)
    return dg.RunRequest(run_key=key, partition_key=key)
