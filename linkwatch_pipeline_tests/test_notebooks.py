"""The notebooks run from top to bottom on a made-up history, and are committed without outputs that go stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline_tests.histories import made_home

WEEKS = 10
NOTEBOOKS = {path.stem: path for path in sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with ten weeks of a thousand links, some of which asked for a pause."""
    folder = tmp_path_factory.mktemp("notebooks") / "home"
    made_home(folder, links=1_000, weeks=WEEKS, seed=8, in_store=False)[0].close()
    return folder


def run(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook's names are in the end."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("LINKWATCH_HOME", str(home))
    names: dict[str, Any] = {}
    for source in _code(NOTEBOOKS[name]):
        exec(compile(source, name, "exec"), names)
    return names


def test_outcome_distributions(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run("outcome_distributions", made, monkeypatch)
    assert len(found["shares"]) == WEEKS
    assert found["shares"].sum(axis=1).tolist() == pytest.approx([1.0] * WEEKS)
    assert 0 < found["unsaid"].mean() < 0.1
    assert set(found["reasons"]["reason"]) >= {"timeout", "server_error"}


def test_host_politeness(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run("host_politeness", made, monkeypatch)
    assert found["visits"]["rest_s"].notna().sum() > 1_000
    assert len(found["too_soon"]) == 0
    assert len(found["slowest"]) == 10
    assert len(found["asked_to_wait"]) > 0


def test_every_notebook_is_run() -> None:
    assert set(NOTEBOOKS) == {"outcome_distributions", "host_politeness"}


@pytest.mark.parametrize("notebook", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_it_holds_no_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def _code(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
