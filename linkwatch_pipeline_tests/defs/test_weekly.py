"""The weekly job on a real home and a small real Internet: what a week leaves, and every way to run it again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from linkwatch_pipeline.definitions import defs
from linkwatch_pipeline.defs.register import link_registry
from linkwatch_pipeline.defs.weekly import weekly_partitions
from linkwatch_pipeline.domain.runs import RunState, retry_run_id, weekly_run_id
from linkwatch_pipeline.domain.timestamps import parse_week
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline_tests.defs.conftest import Watch
from linkwatch_pipeline_tests.defs.watched import WEEK, Watched, checks, failure, materialized, metadata
from linkwatch_pipeline_tests.gates.busy_week import records
from linkwatch_pipeline_tests.world import Answer, visits, weekly

WEEKLY_ASSETS = {"link_registry", "observation_batches", "state_transitions", "outbox", "coverage_report"}
WEEKLY_CHECKS = {
    "every_job_is_terminal",
    "coverage_is_above_threshold",
    "no_dead_letters",
    "every_transition_has_one_notice",
    "no_unknown_deliveries",
    "every_week_is_in_the_warehouse",
}
THREE_HOSTS = {
    "alpha.example": {"/one": 200, "/two": 404, "/three": 200},
    "beta.example": {"/one": 500, "/two": 200},
    "gamma.example": {"/one": 200},
}


@pytest.fixture
def three_hosts(watch: Watch) -> Watched:
    return watch(THREE_HOSTS)


def test_monday_at_nine_asks_for_the_week_that_begins_then() -> None:
    schedule = defs.resolve_schedule_def("weekly_schedule")
    tick = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
    with dg.build_schedule_context(scheduled_execution_time=tick, repository_def=defs.get_repository_def()) as context:
        [request] = schedule.evaluate_tick(context).run_requests or ()
    assert (request.run_key, request.partition_key) == ("2026-09-28", "2026-09-28")
    assert weekly_partitions.time_window_for_partition_key("2026-09-28").start == tick
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 9 * * 1", "UTC")


def test_a_week_exists_from_its_intended_time_on_and_not_a_second_earlier() -> None:
    def newest(at: datetime) -> str:
        return weekly_partitions.get_partition_keys(current_time=at)[-1]

    assert newest(WEEK - timedelta(seconds=1)) == "2026-09-21"
    assert newest(WEEK) == "2026-09-28"


def test_the_weekly_job_is_all_weekly_assets_and_their_checks() -> None:
    layer = defs.resolve_job_def("weekly_check").asset_layer
    assert {key.to_user_string() for key in layer.selected_asset_keys} == WEEKLY_ASSETS
    assert {key.name for key in layer.asset_graph.asset_check_keys} == WEEKLY_CHECKS


def test_a_week_through_the_assets_shows_what_it_found(three_hosts: Watched) -> None:
    result = three_hosts.run_week()
    assert result.success
    assert materialized(result) == WEEKLY_ASSETS
    registry = metadata(result, "link_registry")
    assert (registry["dagster/row_count"], registry["hosts"], registry["links_unknown"]) == (6, 3, 6)
    seen = metadata(result, "observation_batches")
    assert (seen["jobs_expected"], seen["jobs_reachable"], seen["jobs_broken"], seen["jobs_uncertain"]) == (6, 4, 1, 1)
    assert (seen["jobs_throttled"], seen["coverage_percent"], seen["state"]) == (0, 83.3, "closed")
    hosts = {row["host"]: (row["jobs"], row["left"], row["ended"]) for row in seen["hosts"]}
    assert hosts["alpha.example"] == (3, 0, "reachable 2, broken 1")
    troubled = [(row["link"], row["outcome"], row["status"]) for row in seen["pages_in_trouble"]]
    assert troubled == [("alpha-two", "broken", 404), ("beta-one", "uncertain", 500)]
    assert "[alpha-two](<http://alpha.example/two>) broken (gone)" in seen["pages"]
    assert {row["host"] for row in seen["slowest_hosts"]} == set(THREE_HOSTS)
    [change] = metadata(result, "state_transitions")["transitions"]
    assert (change["transition"], change["change"], change["status"]) == ("alpha-two:1", "unknown to broken", 404)
    [notice] = metadata(result, "outbox")["notices"]
    assert (notice["transition"], notice["delivery"], notice["owner"]) == ("alpha-two:1", "pending", "docs-team")
    report = metadata(result, "coverage_report")
    assert (report["dagster/row_count"], report["reachable"], report["file_written_now"]) == (6, 4, True)
    assert [(row["week"], row["observations"], row["broken"]) for row in report["weeks"]] == [("2026-09-28", 6, 1)]


def test_a_finished_week_materialised_again_changes_nothing_and_shows_the_same(three_hosts: Watched) -> None:
    first = three_hosts.run_week()
    with three_hosts.open() as app:
        before = records(app.store, WEEK)
    asked = three_hosts.requests()
    three_hosts.now = WEEK + timedelta(days=20)
    again = three_hosts.run_week()
    with three_hosts.open() as app:
        assert records(app.store, WEEK) == before
    assert three_hosts.requests() == asked
    seen, seen_again = metadata(first, "observation_batches"), metadata(again, "observation_batches")
    assert seen_again.pop("batches") == 0
    assert seen.pop("batches") == 3
    assert seen_again == seen
    assert metadata(again, "coverage_report")["file_written_now"] is False


def test_an_open_week_goes_on_where_it_stopped(three_hosts: Watched) -> None:
    with three_hosts.open() as app:
        run = begin_week(app.store, WEEK, now=app.clock.now())
        with app.sole_runner() as worker:
            app.observe(run, ["alpha.example"], worker=worker)
    assert three_hosts.world.log.hosts() != []
    already = three_hosts.requests()
    result = three_hosts.run_week()
    assert result.success
    assert metadata(result, "observation_batches")["jobs_ended"] == 6
    assert three_hosts.requests() == 6
    assert already >= 3


def test_a_week_whose_time_is_up_expires_the_rest_and_says_so(three_hosts: Watched) -> None:
    _begin_only(three_hosts)
    three_hosts.now = WEEK + timedelta(hours=25)  # beyond the window for retry runs too
    result = three_hosts.run_week()
    assert result.success
    seen = metadata(result, "observation_batches")
    assert (seen["jobs_expired"], seen["jobs_ended"], seen["state"], seen["batches"]) == (6, 6, "closed", 0)
    assert seen["minutes_late"] == pytest.approx(24.5 * 60, abs=1)
    assert three_hosts.requests() == 0
    assert checks(result)["every_job_is_terminal"]
    assert not checks(result)["coverage_is_above_threshold"]
    assert "6 jobs of run 2026-09-28T09:00:00Z expired" in _logged(three_hosts.instance, result.run_id)


def test_links_of_a_week_that_ran_out_are_looked_at_again_within_a_day(three_hosts: Watched) -> None:
    _begin_only(three_hosts)
    three_hosts.now = WEEK + timedelta(hours=7)
    seen = metadata(three_hosts.run_week(), "observation_batches")
    assert seen["jobs_expired"] == 6
    weekly_id = weekly_run_id(WEEK)
    assert [(row["run"], row["state"], row["ended"]) for row in seen["runs"]] == [
        (weekly_id, "closed", "expired 6"),
        (retry_run_id(weekly_id), "closed", "reachable 4, broken 1, uncertain 1"),
    ]
    assert three_hosts.requests() == 6


def test_a_past_week_that_nobody_ran_is_refused_and_recorded_as_missed(three_hosts: Watched) -> None:
    three_hosts.now = WEEK + timedelta(days=9)
    result = three_hosts.run_week()
    assert not result.success
    assert "was never run and is over: it is recorded as missed" in failure(result)
    assert materialized(result) == set()
    assert three_hosts.requests() == 0
    with three_hosts.open() as app:
        run = app.store.get_run(weekly_run_id(WEEK))
    assert run is not None
    assert run.state is RunState.MISSED


def test_a_second_run_while_one_goes_on_fails_and_does_nothing(three_hosts: Watched) -> None:
    with three_hosts.open() as app, app.sole_runner():
        result = three_hosts.run_week()
    assert not result.success
    assert "another process is running checks" in failure(result)
    assert three_hosts.requests() == 0
    assert materialized(result) == set()


def test_nothing_is_materialised_without_a_week(three_hosts: Watched, instance: dg.DagsterInstance) -> None:
    with three_hosts.open() as app:
        result = dg.materialize([link_registry], resources={"app": app}, instance=instance, raise_on_error=False)
        assert not result.success
        assert list(app.store.runs()) == []


@pytest.mark.parametrize(("batches", "steps"), [("2", 2), ("50", 3)])
def test_hosts_are_grouped_into_as_many_batches_as_the_setting_says(
    three_hosts: Watched, batches: str, steps: int
) -> None:
    three_hosts.env["LINKWATCH_BATCHES"] = batches
    result = three_hosts.run_week()
    done = [event.step_key for event in result.all_events if event.is_step_success and "check_host_batch" in str(event)]
    assert len(set(done)) == steps
    assert metadata(result, "observation_batches")["batches"] == steps
    assert three_hosts.requests() == 6


def test_weeks_are_compared_in_the_report_and_told_once(watch: Watch) -> None:
    watched = watch({"docs.example": {"/guide": weekly(200, 404, 404, 200)}})
    results = []
    for number, key in enumerate(("2026-09-07", "2026-09-14", "2026-09-21", "2026-09-28")):
        watched.world.week, watched.now = number, parse_week(key)
        results.append(watched.run_week(parse_week(key)))
    changes = [metadata(result, "state_transitions") for result in results]
    assert [(c["newly_broken"], c["recovered"]) for c in changes] == [(0, 0), (1, 0), (0, 0), (0, 1)]
    table = metadata(results[-1], "coverage_report")["weeks"]
    assert [(row["week"], row["reachable"], row["broken"]) for row in table] == [
        ("2026-09-28", 1, 0),
        ("2026-09-21", 0, 1),
        ("2026-09-14", 0, 1),
        ("2026-09-07", 1, 0),
    ]


def test_a_page_that_was_throttled_first_and_fine_later_is_no_trouble(watch: Watch) -> None:
    watched = watch({"docs.example": {"/guide": visits(Answer(429, headers={"Retry-After": "1"}), 200)}})
    first = metadata(watched.run_week(), "observation_batches")
    assert (first["jobs_throttled"], first["links_in_trouble"]) == (1, 1)
    watched.now = WEEK + timedelta(minutes=1)
    again = metadata(watched.run_week(), "observation_batches")
    assert (again["jobs_throttled"], again["links_in_trouble"]) == (1, 0)  # the weekly run's arithmetic stays
    assert [row["run"] for row in again["hosts"]] == [run["run"] for run in again["runs"]]
    assert len(again["runs"]) == 2


def _begin_only(watched: Watched) -> None:
    """Dispatch the week and go away."""
    with watched.open() as app:
        begin_week(app.store, WEEK, now=app.clock.now())


def _logged(instance: dg.DagsterInstance, run_id: str) -> str:
    return "\n".join(entry.user_message for entry in instance.all_logs(run_id))
