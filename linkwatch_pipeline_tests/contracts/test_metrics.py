"""What every place for metrics promises (`ports.Metrics`), run on each adapter."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.metrics.cloudwatch import CloudWatchMetrics
from linkwatch_pipeline.adapters.metrics.local import LocalMetrics
from linkwatch_pipeline.ports import Metrics
from linkwatch_pipeline_tests.cloud.ministack import Cloud

MINUTE = timedelta(minutes=1)
# CloudWatch takes no number of more than two weeks ago.
NOW = SystemClock().now().replace(second=0, microsecond=0)


@dataclass(frozen=True)
class MetricsCase:
    """Metrics, a way to read the values of one back in the order of their times, and metrics that nobody takes."""

    metrics: Metrics
    values: Callable[[str], list[float]]
    broken: Metrics


def local_case(request: pytest.FixtureRequest, tmp_path: Path) -> MetricsCase:
    file, folder = tmp_path / "metrics.jsonl", tmp_path / "folder"
    folder.mkdir()

    def values(name: str) -> list[float]:
        lines = map(json.loads, file.read_text().splitlines())
        return [line["value"] for line in sorted(lines, key=lambda line: line["at"]) if line["name"] == name]

    return MetricsCase(LocalMetrics(file), values, broken=LocalMetrics(folder))


def cloudwatch_case(request: pytest.FixtureRequest, tmp_path: Path) -> MetricsCase:
    cloud: Cloud = request.getfixturevalue("ministack")
    client, namespace = cloud.client("cloudwatch"), f"linkwatch-{uuid4().hex}"

    def values(name: str) -> list[float]:
        answer = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            StartTime=NOW - 60 * MINUTE,
            EndTime=NOW + 60 * MINUTE,
            Period=60,
            Statistics=["Sum"],
        )
        return [point["Sum"] for point in sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])]

    return MetricsCase(
        CloudWatchMetrics(client, namespace=namespace), values, broken=CloudWatchMetrics(client, namespace="")
    )


@pytest.fixture(params=[pytest.param(local_case, id="local"), pytest.param(cloudwatch_case, id="cloudwatch")])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> MetricsCase:
    made = request.param(request, tmp_path)
    assert isinstance(made, MetricsCase)
    return made


def test_numbers_are_kept_under_their_names_and_times(case: MetricsCase) -> None:
    case.metrics.put("RunLate", 1, at=NOW)
    case.metrics.put("Heartbeat", 0.5, unit="Seconds", at=NOW)
    case.metrics.put("RunLate", 0, at=NOW + 5 * MINUTE)
    assert case.values("RunLate") == [1, 0]
    assert case.values("Heartbeat") == [0.5]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_refused(case: MetricsCase, value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        case.metrics.put("n", value, at=NOW)


def test_a_number_that_cannot_be_written_disturbs_nobody(case: MetricsCase, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        case.broken.put("n", 1, at=NOW)
    assert "metric not written" in caplog.text
