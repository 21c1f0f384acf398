"""Dagster's front door: gathers the files of defs/, nothing else."""

import dagster as dg

from linkwatch_pipeline.defs import (
    checks,
    deliver,
    observe,
    register,
    report,
    resources,
    retry,
    service_status,
    transition,
    watch_health,
    weekly,
)

defs = dg.Definitions(
    assets=[
        register.link_registry,
        observe.observation_batches,
        transition.state_transitions,
        transition.outbox,
        report.coverage_report,
        deliver.deliveries,
        watch_health.run_health,
        service_status.service_uptime,
    ],
    asset_checks=[
        checks.every_job_is_terminal,
        checks.coverage_is_above_threshold,
        checks.no_dead_letters,
        checks.every_transition_has_one_notice,
        checks.no_unknown_deliveries,
        checks.every_week_is_in_the_warehouse,
    ],
    jobs=[
        weekly.weekly_check,
        deliver.deliver_notices_job,
        watch_health.run_health_job,
        service_status.service_status_job,
    ],
    schedules=[weekly.weekly_schedule, service_status.service_status_schedule],
    sensors=[deliver.outbox_sensor, retry.retry_sensor, watch_health.health_sensor],
    resources={
        "app": resources.app_resource,
        "run_lock": resources.run_lock_resource,
        # Steps hand each other names and counts only, within one process: nothing needs to be pickled to disk.
        "io_manager": dg.mem_io_manager,
    },
    executor=dg.in_process_executor,
)
