"""`linkwatch generate-history`, and the analysts' door to what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.reports import connect
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

SMALL = ("generate-history", "--links", "20", "--weeks", "2", "--through", "2026-09-28")


def test_a_history_is_made_reported_and_opened_by_analysts(terminal: Terminal) -> None:
    document = terminal.fine(*SMALL, "--json").document
    assert (document["links"], document["weeks"], document["in_store"]) == (20, ["2026-09-21", "2026-09-28"], True)
    assert document["observations"] >= 40
    assert terminal.fine("report", "--json").document["this_week"]["links_seen"] == 20
    with connect(terminal.home) as warehouse:
        looks = warehouse.sql("SELECT count(*) AS looks, max(observed_at) AS last FROM observations").df()
        assert looks["looks"][0] == document["observations"]
        assert str(looks["last"][0]).startswith("2026-09-28 09:")
        assert len(warehouse.sql("FROM weekly_outcomes WHERE run_week = DATE '2026-09-28'").df()) > 0


def test_a_home_with_links_and_nonsense_are_refused(terminal: Terminal) -> None:
    assert "links" in terminal.refused("generate-history", "--links", "0")
    assert "not a Monday" in terminal.refused("generate-history", "--through", "2026-09-29")
    assert not terminal.home.exists()
    assert "through: 2999-12-30 has not begun" in terminal.refused("generate-history", "--through", "2999-12-30")
    assert "week: 2999-12-30 has not begun" in terminal.refused("report", "--week", "2999-12-30")
    terminal.fine(*SMALL)
    assert "has links already" in terminal.refused(*SMALL)


def test_analysts_are_told_when_there_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="no linkwatch home"):
        connect(tmp_path / "nowhere")
    monkeypatch.setenv("LINKWATCH_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(ConfigurationError, match="elsewhere"):
        connect()
    assert list(tmp_path.iterdir()) == []
