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
from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.runs import count_chains, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation, dispatched
from linkwatch_pipeline_tests.defs.watched import metadata
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
        ("2026-09-21", "", "no data", None, None),
        ("2026-09-14", "closed", "66.6 %", 3, 1),
    ]
    [host] = report["worst_hosts"]
    assert (host["host"], host["links"], host["reasons"]) == ("docs.example", 3, "gone 1, timeout 1")
    [again] = report["uncertain_week_after_week"]
    assert (again["link"], again["weeks"], again["owner"], again["place"]) == ("unsure", 2, "docs-team", "a.md:7")
    assert again["url"] == HOSTILE
    assert report["expected_text_missing"] == []
    assert "problems" not in report


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
