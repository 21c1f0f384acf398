"""The Dagster UI really starts, shows everything, launches runs on the home, and ends without leaving anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.entrypoints.cli import main
from linkwatch_pipeline_tests.defs.dagster_dev import DagsterDev, is_free, started
from linkwatch_pipeline_tests.ports import reserved_port

ROOT = Path(__file__).resolve().parents[2]
WEEKS = ["2026-09-07", "2026-09-14", "2026-09-21", "2026-09-28"]
EVERYTHING = """{ repositoryOrError(
    repositorySelector: {repositoryLocationName: "linkwatch_pipeline", repositoryName: "__repository__"}) {
  ... on Repository { assetNodes { assetKey { path } } schedules { name scheduleState { status } }
                      sensors { name sensorState { status } } jobs { name } } }
  instance { daemonHealth { id } } }"""
FILLED = """{ assetNodeOrError(assetKey: {path: ["observation_batches"]}) {
  ... on AssetNode { assetPartitionStatuses {
    ... on TimePartitionStatuses { ranges { startKey endKey status } } } } } }"""
LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
STATUS = """query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"""


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def test_dagster_dev_starts_in_the_repository_and_shows_everything(tmp_path: Path, port: int) -> None:
    homes_before = set(ROOT.glob(".tmp_dagster_home_*"))  # of somebody who was killed, or who runs it now
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DAGSTER_")}
    environment["LINKWATCH_HOME"] = str(tmp_path / "home")
    command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
    with started(command, port, cwd=ROOT, env=environment, output=tmp_path / "output") as dev:
        dev.until_it_serves()
        shown = dev.ask(EVERYTHING)["repositoryOrError"]
        assert {node["assetKey"]["path"][-1] for node in shown["assetNodes"]} == {
            "link_registry",
            "observation_batches",
            "state_transitions",
            "outbox",
            "coverage_report",
            "deliveries",
            "run_health",
            "service_uptime",
        }
        assert {s["name"]: s["scheduleState"]["status"] for s in shown["schedules"]} == {
            "weekly_schedule": "RUNNING",
            "service_status_schedule": "STOPPED",
        }
        assert {s["name"]: s["sensorState"]["status"] for s in shown["sensors"]} == {
            "health_sensor": "RUNNING",
            "outbox_sensor": "RUNNING",
            "retry_sensor": "RUNNING",
        }
        assert not [line for line in dev.said().splitlines() if "Warning" in line and "dev_command" not in line]
        assert dev.interrupt() == 0
        dev.until_nothing_is_left()
    assert is_free(port)
    assert set(ROOT.glob(".tmp_dagster_home_*")) <= homes_before


@pytest.mark.campaign
def test_linkwatch_dev_shows_the_demos_weeks_sends_its_notices_and_runs_what_is_launched(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--no-deliver"]) == 0
    home = tmp_path / ".linkwatch-demo"
    command = [
        sys.executable,
        "-c",
        "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())",
    ]
    with started(
        [*command, "--home", str(home), "dev", "--port", str(port)],
        port,
        cwd=tmp_path,
        env=dict(os.environ),
        output=tmp_path / "output",
    ) as dev:
        dev.until_it_serves()
        [filled] = dev.ask(FILLED)["assetNodeOrError"]["assetPartitionStatuses"]["ranges"]
        assert (filled["startKey"], filled["endKey"], filled["status"]) == (WEEKS[0], WEEKS[-1], "MATERIALIZED")
        # Two ticks of the outbox sensor are two minutes.
        dev.until(lambda: len(list((home / "mail").glob("*.eml"))) == 2, seconds=120)
        run_id = _launch(dev, "weekly_check", {"dagster/partition": WEEKS[-1]})
        ended = dev.until(lambda: _ended(dev, run_id), seconds=120)
        assert ended == "SUCCESS", dev.said()
        assert "Warning" not in dev.said()
        assert dev.interrupt() == 0
        dev.until_nothing_is_left()
    with build_app(home, env={}) as app:
        assert [n.status.value for n in app.store.notices()] == ["sent", "sent"]
        assert len(list(app.store.observations())) == 4


def _launch(dev: DagsterDev, job: str, tags: dict[str, str]) -> str:
    selector = {
        "repositoryLocationName": "linkwatch_pipeline",
        "repositoryName": "__repository__",
        "pipelineName": job,
    }
    metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
    launched = dev.ask(LAUNCH, params={"selector": selector, "mode": "default", "executionMetadata": metadata})
    assert launched["launchRun"]["__typename"] == "LaunchRunSuccess", launched
    return str(launched["launchRun"]["run"]["runId"])


def _ended(dev: DagsterDev, run_id: str) -> str | None:
    status = str(dev.ask(STATUS, id=run_id)["runOrError"]["status"])
    return status if status in ("SUCCESS", "FAILURE", "CANCELED") else None
