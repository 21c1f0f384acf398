"""Metrics in a file that stays small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.metrics import local
from linkwatch_pipeline.adapters.metrics.local import LocalMetrics
from linkwatch_pipeline_tests.builders import MONDAY


def test_each_number_is_one_json_line(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "metrics.jsonl"
    metrics = LocalMetrics(file)
    metrics.put("RunLate", 1, at=MONDAY)
    metrics.put("Heartbeat", 0.5, unit="Seconds", at=MONDAY)
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        {"name": "RunLate", "value": 1, "unit": "Count", "at": "2026-09-28T09:00:00.000000Z"},
        {"name": "Heartbeat", "value": 0.5, "unit": "Seconds", "at": "2026-09-28T09:00:00.000000Z"},
    ]


def test_the_file_is_rotated_and_one_older_file_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ROTATE_AT_BYTES", 1_000)
    metrics = LocalMetrics(tmp_path / "metrics.jsonl")
    for number in range(100):
        metrics.put("n", number, at=MONDAY)
    files = {path.name: path.read_text().splitlines() for path in tmp_path.iterdir()}
    assert sorted(files) == ["metrics.jsonl", "metrics.jsonl.1"]
    values = [json.loads(line)["value"] for line in files["metrics.jsonl.1"] + files["metrics.jsonl"]]
    assert values == list(range(values[0], 100))
    assert all((tmp_path / name).stat().st_size <= 1_000 for name in files)
