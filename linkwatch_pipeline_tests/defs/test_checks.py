"""Each asset check passes on a good week and fails on a bad one; the blocking ones stop what stands downstream."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from linkwatch_pipeline.defs.checks import every_job_is_terminal
from linkwatch_pipeline.defs.observe import observation_batches
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus, weekly_run_id
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline_tests.defs.conftest import Watch
from linkwatch_pipeline_tests.defs.watched import WEEK, Watched, checks, failure, materialized

PAGES = {"alpha.example": {"/one": 200, "/two": 404}, "beta.example": {"/one": 200}}
OBSERVED = {"link_registry", "observation_batches"}
EVERYTHING = OBSERVED | {"state_transitions", "outbox", "coverage_report"}


@pytest.fixture
def watched(watch: Watch) -> Watched:
    return watch(PAGES)


def test_all_checks_pass_on_a_good_week(watched: Watched) -> None:
    result = watched.run_week()
    assert checks(result) == {
        "every_job_is_terminal": True,
        "coverage_is_above_threshold": True,
        "no_dead_letters": True,
        "every_transition_has_one_notice": True,
        "no_unknown_deliveries": True,
        "every_week_is_in_the_warehouse": True,
    }
    assert _shown(result, "coverage_is_above_threshold")["coverage_percent"] == 100.0
    assert _shown(result, "every_transition_has_one_notice")["transitions"] == 1


def test_a_job_that_never_ended_stops_everything_downstream(watched: Watched) -> None:
    with watched.open() as app:
        begin_week(app.store, WEEK, now=app.clock.now())
    _spoil(watched, "UPDATE chains SET total = total + 1 WHERE host = 'beta.example'")
    result = watched.run_week()
    assert not result.success
    assert checks(result) == {
        "every_job_is_terminal": False,
        "coverage_is_above_threshold": False,
        "no_dead_letters": True,
    }
    assert _shown(result, "every_job_is_terminal")["pending"] == 1
    assert materialized(result) == OBSERVED


@pytest.mark.parametrize(
    ("damage", "unpaired"),
    [
        ("DELETE FROM notices", "alpha-two:1"),
        ("UPDATE notices SET transition_id = 'alpha-two:9'", "alpha-two:1, alpha-two:9"),
    ],
    ids=["none at all", "that of another"],
)
def test_a_transition_without_its_notice_stops_the_report(watched: Watched, damage: str, unpaired: str) -> None:
    watched.drive_week()
    _spoil(watched, damage)
    result = watched.run_week()
    assert not result.success
    assert not checks(result)["every_transition_has_one_notice"]
    assert _shown(result, "every_transition_has_one_notice")["unpaired"] == unpaired
    assert materialized(result) == EVERYTHING - {"coverage_report"}
    assert "every_transition_has_one_notice" in failure(result)


def test_a_transition_that_cannot_be_read_stops_nothing(watched: Watched) -> None:
    watched.drive_week()
    _spoil(watched, "UPDATE transitions SET to_state = 'no such state'")
    _spoil(watched, "UPDATE observations SET page_hints = 'no such thing' WHERE link_id = 'alpha-one'")
    result = watched.run_week()
    assert result.success
    assert _shown(result, "every_transition_has_one_notice")["transitions"] == 0
    assert materialized(result) == EVERYTHING
    [report] = result.asset_materializations_for_node("coverage_report")
    said = str(report.metadata["problems"].value)
    assert all(f"of {table} is damaged" in said for table in ("observations", "transitions"))


def test_poor_coverage_warns_and_stops_nothing(watch: Watch) -> None:
    watched = watch({"alpha.example": {"/one": 500, "/two": 200}})
    result = watched.run_week()
    assert result.success
    assert checks(result)["every_job_is_terminal"]
    [evaluation] = [e for e in result.get_asset_check_evaluations() if e.check_name == "coverage_is_above_threshold"]
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
    shown = _shown(result, "coverage_is_above_threshold")
    assert (shown["coverage_percent"], shown["threshold_percent"], shown["jobs_uncertain"]) == (50.0, 90.0, 1)
    assert materialized(result) == EVERYTHING


def test_a_week_without_links_has_no_data_rather_than_full_coverage(watch: Watch) -> None:
    result = watch({"alpha.example": {}}).run_week()
    assert result.success
    assert not checks(result)["coverage_is_above_threshold"]
    assert _shown(result, "coverage_is_above_threshold")["coverage_percent"] == "no data"


def test_a_job_given_up_is_told(watched: Watched) -> None:
    with watched.open() as app:
        begin_week(app.store, WEEK, now=app.clock.now())
        job = app.store.get_job(weekly_run_id(WEEK), "alpha-one")
        assert job is not None
        assert app.store.end_job(job, status=JobStatus.ABANDONED, reason=Reason.POISON) is not None
    result = watched.run_week()
    assert not checks(result)["no_dead_letters"]
    assert _shown(result, "no_dead_letters")["abandoned"] == 1
    assert materialized(result) == EVERYTHING


def test_a_mail_in_doubt_is_told(watched: Watched) -> None:
    watched.drive_week()
    with watched.open() as app:
        app.prepare_delivery()
        notice = app.store.claim_notice("alpha-two:1", by="test", now=app.clock.now() + timedelta(minutes=1))
        assert notice is not None
        assert app.store.save_notice(replace(notice, status=NoticeStatus.UNKNOWN), claimed_by="test")
    result = watched.run_week()
    assert not checks(result)["no_unknown_deliveries"]
    assert _shown(result, "no_unknown_deliveries")["which"] == "alpha-two:1"
    assert materialized(result) == EVERYTHING


def test_a_lost_week_of_the_warehouse_is_told_on_the_report(watched: Watched) -> None:
    watched.run_week()
    last_week = watched.folder / "warehouse" / "observations" / f"week={WEEK:%Y-%m-%d}.parquet"
    last_week.unlink()
    with closing(sqlite3.connect(watched.folder / "linkwatch.sqlite3")) as database, database:
        database.execute("DELETE FROM observations")
    watched.now = WEEK + timedelta(days=7)
    result = watched.run_week(watched.now)
    assert result.success
    assert not checks(result)["every_week_is_in_the_warehouse"]
    shown = _shown(result, "every_week_is_in_the_warehouse")
    assert (shown["weeks"], shown["weeks_lost_or_damaged"], shown["which"]) == (2, 1, "2026-09-28")
    assert (shown["observations"], shown["observations_lost"]) == (6, 3)


def test_a_check_executed_on_its_own_looks_at_the_newest_week(watched: Watched) -> None:
    """The button on a check's page launches it without a partition."""
    watched.drive_week()
    watched.now = WEEK + timedelta(days=30)
    with watched.open() as app:
        result = dg.materialize(
            [observation_batches, every_job_is_terminal],
            selection=dg.AssetSelection.checks(every_job_is_terminal),
            resources={"app": app, "run_lock": "nobody"},
            instance=watched.instance,
        )
    assert checks(result) == {"every_job_is_terminal": True}
    assert _shown(result, "every_job_is_terminal")["run"] == "2026-09-28T09:00:00Z"


def _shown(result: dg.ExecuteInProcessResult, check: str) -> dict[str, Any]:
    [evaluation] = [e for e in result.get_asset_check_evaluations() if e.check_name == check]
    return {key: value.value for key, value in evaluation.metadata.items()}


def _spoil(watched: Watched, statement: str) -> None:
    """Damage the database as no linkwatch would."""
    with closing(sqlite3.connect(watched.folder / "linkwatch.sqlite3")) as database, database:
        assert database.execute(statement).rowcount == 1
