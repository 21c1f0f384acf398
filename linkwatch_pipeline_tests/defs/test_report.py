"""The asset `coverage_report` as the UI shows it."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.defs.report import coverage_report
from linkwatch_pipeline.defs.section_tables import MOST_ROWS, section_tables
from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.runs import count_chains, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation, dispatched
from linkwatch_pipeline_tests.defs.watched import metadata
from linkwatch_pipeline_tests.report_builders import HOSTILE as EVERYTHING_HOSTILE
from linkwatch_pipeline_tests.report_builders import a_report
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

HOSTILE = "https://docs.example/a?](javascript:x)<script>"
STATUSES = {"fine": 200, "gone": 404, "unsure": None}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Two weeks of three links, with a week between them that nobody ran."""
    with build_app(tmp_path / "home", env={}, clock=VirtualClock(MONDAY + timedelta(days=1))) as app:
        links = {
            link_id: a_link(link_id, HOSTILE, active_since=MONDAY - 9 * WEEK, places=(Place(file="a.md", line=7),))
            for link_id in STATUSES
        }
        for link in links.values():
            app.store.save_link(link, replaces=None)
        for week in (MONDAY - 2 * WEEK, MONDAY):
            for job in dispatched(app.store, list(links.values()), run=a_run(week)):
                seen = an_observation(links[job.link_id], STATUSES[job.link_id], job=job, observed_at=week)
                app.store.record(seen, default_confirm=1, now=week)
            run_id = weekly_run_id(week)
            app.store.close_run(run_id, totals=count_chains(app.store.chains(run_id)), at=week)
        yield app


def shown(app: App, instance: dg.DagsterInstance) -> dict[str, Any]:
    result = dg.materialize(
        [coverage_report], partition_key="2026-09-28", resources={"app": app}, instance=instance, raise_on_error=True
    )
    return metadata(result, "coverage_report")


def test_the_report_is_shown_as_tables_numbers_and_pictures(app: App, instance: dg.DagsterInstance) -> None:
    report = shown(app, instance)
    assert (report["coverage_percent"], report["completeness_percent"], report["uncertain"]) == (66.6, 100.0, 1)
    assert (report["dagster/row_count"], report["file_written_now"], report["links_uncertain_again"]) == (3, True, 1)
    weeks = [(row["week"], row["run"], row["coverage"], row["observations"], row["broken"]) for row in report["weeks"]]
    assert weeks == [
        ("2026-09-28", "closed", "66.6 %", 3, 1),
        ("2026-09-21", "missed", "no data", None, None),
        ("2026-09-14", "closed", "66.6 %", 3, 1),
    ]
    [host] = report["hosts_in_trouble"]
    assert (host["host"], host["links"], host["reasons"]) == ("docs.example", 3, "gone 1, timeout 1")
    [again] = report["uncertain_week_after_week"]
    assert (again["place"], again["owner"], again["link"]) == ("a.md:7", "docs-team", HOSTILE)
    assert (again["weeks in a row"], again["since"]) == (2, "2026-09-14 09:00")
    assert "problems" not in report


def test_every_section_of_the_page_is_a_table_in_the_ui_or_says_that_it_is_empty(
    app: App, instance: dg.DagsterInstance
) -> None:
    report = shown(app, instance)
    [gone] = report["still_broken"]
    assert (gone["place"], gone["broken since"], gone["status"]) == ("a.md:7", "2026-09-14 09:00", 404)
    assert [(row["owner"], row["links"], row["broken"]) for row in report["by_owner"]] == [("docs-team", 3, 1)]
    assert [(row["host"], row["links"]) for row in report["by_host"]] == [("docs.example", 3)]
    assert [(row["file"], row["links"]) for row in report["by_handbook_file"]] == [("a.md", 3)]
    assert [row["host"] for row in report["slowest_hosts"]] == ["docs.example"]
    assert [row["available"] for row in report["availability_by_link"]] == ["0.0 %"]
    assert (report["newly_broken"], report["recovered"], report["moved_for_good"]) == (
        "No link broke in this week.", "No link came back.", "No page moved for good.",
    )  # fmt: skip
    assert report["without_the_expected_text"] == "Every page that was found had the text expected of it."
    assert report["advice_certificates_that_end_soon"] == "No certificate ends within 21 days."
    assert report["advice_perhaps_another_page_than_was_meant"].startswith("No page looks like")
    assert (report["links_to_mend"], report["links_still_broken"]) == (1, 1)


def test_what_others_wrote_is_short_and_visible_in_the_tables_of_the_ui() -> None:
    tables = [
        value
        for value in section_tables(a_report(*EVERYTHING_HOSTILE)).values()
        if isinstance(value, dg.TableMetadataValue)
    ]
    cells = [cell for table in tables for row in table.records for cell in row.data.values() if isinstance(cell, str)]
    assert len(tables) == 14
    assert [cell for cell in cells if not cell.isprintable() or len(cell) > 350] == []
    assert "https://h.example/\\u202egpj.exe" in cells


def test_a_table_of_the_ui_says_how_many_rows_it_leaves_out() -> None:
    many = a_report(*(f"https://docs.example/{number}" for number in range(MOST_ROWS + 2)))
    value = section_tables(many)["newly_broken"]
    assert isinstance(value, dg.TableMetadataValue)
    assert (len(value.records), value.records[-1].data["place"]) == (MOST_ROWS + 1, "and 2 more: see the page")


def test_the_picture_of_the_weeks_is_inside_the_page_and_names_nothing_that_others_wrote(
    app: App, instance: dg.DagsterInstance
) -> None:
    picture = shown(app, instance)["weeks_picture"]
    opening = "![outcomes over the weeks](data:image/png;base64,"
    assert picture.startswith(opening)
    assert base64.b64decode(picture.removeprefix(opening).removesuffix(")"), validate=True).startswith(b"\x89PNG")
    assert len(picture) < 100_000


def test_the_page_stands_beside_the_week_and_is_written_anew(app: App, instance: dg.DagsterInstance) -> None:
    page = Path(shown(app, instance)["page"])
    assert page == app.home.warehouse / "reports" / "week=2026-09-28.html"
    assert "<title>Links of week 2026-09-28</title>" in page.read_text()
    page.write_text("spoilt")
    shown(app, instance)
    assert "a?](javascript:x)&lt;script&gt;" in page.read_text()


def test_without_matplotlib_the_tables_stand_alone(
    app: App, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report = shown(app, instance)
    assert "weeks_picture" not in report
    assert len(report["weeks"]) == 3
