"""The whole 18F handbook over 26 made-up weeks: patches apply, formats are valid, and nothing is lost on the way."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.report_formats.html import html_report
from linkwatch_pipeline.adapters.warehouse.history.generated import GeneratedHistory
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.use_cases.generate_history import generate_history, weeks_through
from linkwatch_pipeline.use_cases.report import ALL_ROWS, report_week
from linkwatch_pipeline_tests.adapters.test_report_formats import junit, sarif, table
from linkwatch_pipeline_tests.adapters.test_report_html import parsed
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.campaigns.handbook_weeks import HANDBOOK
from linkwatch_pipeline_tests.handbook_moves import (
    HandbookInventory,
    all_moved,
    found_link,
    found_urls,
    patch_and_scan,
)
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

WEEKS = 26
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not HANDBOOK.is_dir(), reason="the handbook does not lie beside the repository"),
]


def test_26_weeks_of_the_handbook_are_reported_in_every_format(tmp_path: Path) -> None:
    found, weeks = found_urls(HANDBOOK), weeks_through(MONDAY, WEEKS)
    clock = VirtualClock(MONDAY + timedelta(days=2))
    with build_app(tmp_path / "home", env={}, clock=clock) as app:
        inventory = HandbookInventory(found, active_since=weeks[0] - WEEK / 7)
        history = GeneratedHistory(
            len(found),
            seed=18,
            first_week=weeks[0],
            warehouse=ParquetWarehouse(app.home.warehouse),
            folder=app.home.warehouse,
            confirm=1,
            inventory=inventory,
        )
        made = generate_history(
            app.store,
            app.warehouse,
            app.reports,
            history,
            weeks,
            in_store=False,
            default_confirm=1,
            clock=clock,
            grouped=app.grouped,
        )
        assert made.links == len(found)
        report = report_week(app.store, app.warehouse, app.reports, MONDAY, clock=clock, most=ALL_ROWS)
        ends = app.reports.link_ends(MONDAY)
    assert len(ends) == len(found)
    assert report.moved_for_good.total >= 10
    patches = patch_and_scan(HANDBOOK, tmp_path / "copy", report.moved_for_good.rows, report.links)
    places = sum(len(report.links[row.link_id].places) for row in report.moved_for_good.rows)
    assert len(patches.patched) + len(patches.unpatched) == places
    assert len(patches.patched) >= 0.9 * places
    results = sarif(report)["runs"][0]["results"]
    assert len(results) == len(table(report))
    failures = junit(report, ends=ends).get("failures")
    assert failures == str(report.newly_broken.total + report.still_broken.total)
    parsed(html_report(report))
    print(
        f"{len(found)} links, {made.observations} observations; moved {report.moved_for_good.total}: "
        f"{len(patches.patched)} places in {len(patches.diffs)} files patched, {len(patches.unpatched)} left; "
        f"{len(results)} SARIF results, {failures} failures of {len(ends)} test cases"
    )


def test_every_link_of_the_handbook_can_be_moved_where_its_line_holds_it(tmp_path: Path) -> None:
    found = found_urls(HANDBOOK)
    links = {link.id: link for link in map(found_link, found)}
    made = patch_and_scan(HANDBOOK, tmp_path / "copy", all_moved(found), links)
    places = sum(len(each.places) for each in found)
    assert len(made.patched) >= 0.98 * places
    print(f"{places} places, {len(made.patched)} patched in {len(made.diffs)} files")
