"""The front door: everything loads anywhere, says who it belongs to, and reports nothing to anybody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import yaml

from linkwatch_pipeline.adapters.warehouse.schema import COLUMNS
from linkwatch_pipeline.definitions import defs
from linkwatch_pipeline.defs import report
from linkwatch_pipeline.defs.pictures import MOST_LINES, outcome_bars, page_links
from linkwatch_pipeline.entrypoints.cli.dagster_home import prepare_dagster

ROOT = Path(__file__).resolve().parents[2]


def test_the_definitions_load_without_a_home_and_make_none(tmp_path: Path) -> None:
    program = (
        "import dagster as dg\n"
        "from linkwatch_pipeline.definitions import defs\n"
        "dg.Definitions.validate_loadable(defs)\n"
        "import sys; sys.exit('duckdb' in sys.modules or 'pandas' in sys.modules)"
    )
    without = {name: value for name, value in os.environ.items() if not name.startswith("LINKWATCH_")}
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, env=without, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_every_asset_says_what_it_is_whose_it_is_and_what_its_columns_are() -> None:
    for spec in defs.resolve_all_asset_specs():
        assert spec.description, spec.key
        assert spec.group_name in ("weekly", "notices", "health", "service_status"), spec.key
        assert list(spec.owners) == ["team:data-engineering"], spec.key
        assert spec.kinds, spec.key
        assert "dagster/column_schema" in spec.metadata, spec.key


def test_every_job_sensor_schedule_and_check_is_described() -> None:
    repository = defs.get_repository_def()
    descriptions = {sensor.name: sensor.description for sensor in repository.sensor_defs}
    descriptions |= {schedule.name: schedule.description for schedule in repository.schedule_defs}
    descriptions |= {job.name: job.description for job in repository.get_all_jobs() if not job.name.startswith("__")}
    assert [name for name, text in descriptions.items() if not text] == []
    graph = repository.asset_graph
    assert [key for key in graph.asset_check_keys if not graph.get_check_spec(key).description] == []


def test_the_weekly_schedule_and_the_sensors_are_on_by_themselves() -> None:
    repository = defs.get_repository_def()
    assert {s.name: s.default_status.value for s in repository.schedule_defs} == {
        "weekly_schedule": "RUNNING",
        "service_status_schedule": "STOPPED",  # not everybody watches services
    }
    assert {s.name: s.default_status.value for s in repository.sensor_defs} == {
        "outbox_sensor": "RUNNING",
        "retry_sensor": "RUNNING",
        "health_sensor": "RUNNING",
    }


def test_the_columns_of_the_weeks_file_are_all_named() -> None:
    [spec] = [s for s in defs.resolve_all_asset_specs() if s.key == report.coverage_report.key]
    schema = spec.metadata["dagster/column_schema"]
    assert [column.name for column in schema.columns] == [*COLUMNS, "week"]


def test_dagster_takes_our_settings_with_telemetry_off_and_one_weekly_run_at_a_time(tmp_path: Path) -> None:
    folder = prepare_dagster(tmp_path)
    for settings in (folder, ROOT):
        read = yaml.safe_load((settings / "dagster.yaml").read_text())
        assert (read["telemetry"], read["nux"]) == ({"enabled": False}, {"enabled": False})
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        assert instance.telemetry_enabled is False
        assert instance.nux_enabled is False
        limits = instance.get_concurrency_config().run_queue_config
        assert limits is not None
        assert limits.tag_concurrency_limits == [{"key": "linkwatch/kind", "value": "weekly", "limit": 1}]
    weekly = defs.resolve_job_def("weekly_check")
    assert weekly.tags["linkwatch/kind"] == "weekly"


def test_both_doors_give_the_code_location_the_same_name(tmp_path: Path) -> None:
    """Dagster keeps runs, schedule and sensor state under it."""
    folder = prepare_dagster(tmp_path)
    assert yaml.safe_load((folder / "workspace.yaml").read_text()) == yaml.safe_load(
        (ROOT / "workspace.yaml").read_text()
    )


def test_a_settings_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    prepare_dagster(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: false}\n"


def test_a_picture_shows_what_occurred_and_says_it_in_words() -> None:
    picture = outcome_bars({"reachable": 90, "broken": 10, "throttled": 0}).value
    assert picture is not None
    assert picture.startswith("![reachable 90, broken 10](data:image/svg+xml;base64,")
    assert "nothing yet" in (outcome_bars({}).value or "")


def test_a_list_of_pages_can_be_clicked_whatever_their_urls_hold_and_is_cut() -> None:
    listed = page_links([("guide", "http://docs.example/a(b)<c>\\", "broken (gone)")]).value
    assert listed == "- [guide](<http://docs.example/a(b)%3Cc%3E%5C>) broken (gone)"
    lines = (page_links([("guide", "http://docs.example/", "")] * (MOST_LINES + 3)).value or "").splitlines()
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "- and 3 more"
