"""Looking again at what was throttled: the sensor asks for the week once more when its retry run may begin."""

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.weekly import WEEKLY_TAGS, weekly_check
from linkwatch_pipeline.domain.runs import is_retry
from linkwatch_pipeline.domain.timestamps import week_key
from linkwatch_pipeline.use_cases.damage import Damage


@dg.sensor(
    job=weekly_check,
    minimum_interval_seconds=60,
    description="Asks for the weekly job again while a retry run of its week is open.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={"app"},
)
def retry_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Several ticks may ask for the same week: its run adopts what is there, and ends at once when nothing is left."""
    app: App = context.resources.app
    open_retries = [run for run in app.store.runs(open_only=True, damaged=Damage()) if is_retry(run.run_id)]
    if not open_retries:
        return dg.SkipReason("0 retry runs are open")
    # A run key is used up even by a failed run: the hour gives a retry run several chances.
    hour = f"{app.clock.now():%Y%m%d%H}"
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{run.run_id}:{hour}", partition_key=week_key(run.intended_at), tags=WEEKLY_TAGS)
            for run in open_retries
        ]
    )
