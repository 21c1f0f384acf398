"""Reports of a home whose warehouse has a copy in S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal


def test_a_new_home_reports_from_the_bucket_of_another(
    tmp_path: Path, ministack: Cloud, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    ministack.client("s3").create_bucket(Bucket="reports-of-homes")
    for variable, value in ministack.env.items():
        monkeypatch.setenv(variable, value)
    terminal.fine("generate-history", "--links", "20", "--weeks", "2")
    chosen = {"LINKWATCH_WAREHOUSE_BUCKET": "reports-of-homes/links"}
    monkeypatch.setenv(*next(iter(chosen.items())))
    terminal.fine("report")
    with build_app(tmp_path / "new", env=chosen) as app, app.shared_warehouse():
        assert len(app.reports.weeks()) == 2


@pytest.mark.parametrize("value", ["s3://links", "Links", "a", "links/", "links/../x y"])
def test_the_setting_is_a_bucket_and_a_prefix(value: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWATCH_WAREHOUSE_BUCKET", value)
    assert "LINKWATCH_WAREHOUSE_BUCKET must be a bucket's name" in terminal.refused("links")
