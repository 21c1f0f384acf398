"""The last day of the services as an asset: from PostgreSQL if it is there, else a word of what to set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.defs.service_status import service_uptime
from linkwatch_pipeline.domain.service_status import Status, StatusRecord
from linkwatch_pipeline_tests.services.team import USER, Team


def materialised(home: Path, instance: dg.DagsterInstance) -> tuple[Mapping[str, Any], bool]:
    """The asset's metadata, and whether its check passed."""
    with build_app(home, env={}) as app:
        result = dg.materialize([service_uptime], resources={"app": app}, instance=instance)
    (event,) = result.asset_materializations_for_node("service_uptime")
    (check,) = result.get_asset_check_evaluations()
    return event.metadata, check.passed


@pytest.mark.parametrize("url", [None, "mysql://u:hidden@127.0.0.1/x"])
def test_without_a_usable_database_url_it_says_what_to_set_and_nothing_breaks(
    url: str | None, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "DATABASE_URL_SECRET_ARN"):
        monkeypatch.delenv(name, raising=False)
    if url is not None:
        monkeypatch.setenv("DATABASE_URL", url)
    metadata, passed = materialised(tmp_path / "home", instance)
    assert "DATABASE_URL" in metadata["not_set_up"].value
    assert "hidden" not in metadata["not_set_up"].value
    assert passed


def test_it_shows_uptime_and_latencies_of_the_last_day_the_worst_first(
    team: Team, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", team.database_url)
    now = SystemClock().now().replace(microsecond=0)
    good, bad = team.add_service("https://a.example", name="good"), team.add_service("https://b.example", name="bad")

    def record(service_id: str, status: Status, minute: int) -> StatusRecord:
        at = now - timedelta(minutes=minute)
        return StatusRecord(
            id=uuid4(), service_id=service_id, user_id=USER, status=status, response_time=minute + 0.5, checked_at=at
        )

    store = team.store()
    store.add([record(good, Status.UP, minute) for minute in range(10)])
    store.add([record(bad, Status.UP if minute % 2 else Status.DOWN, minute) for minute in range(4, 10)])
    store.close()
    metadata, passed = materialised(tmp_path / "home", instance)
    rows = [row.data for row in metadata["services"].records]
    assert [(row["name"], row["uptime"], row["checks"], row["p50_ms"]) for row in rows] == [
        ("bad", "50.0 %", 6, 7.5),
        ("good", "100.0 %", 10, 5.0),
    ]
    assert metadata["uptime_percent"].value == 81.2
    assert not passed  # nobody looked at `bad` for four minutes
