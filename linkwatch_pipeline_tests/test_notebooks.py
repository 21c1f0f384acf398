"""The notebooks run from top to bottom on a real home, and are committed without outputs that go stale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linkwatch_pipeline.entrypoints.cli import main

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_on_the_demo(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert main(["demo", "--no-deliver", "--json"]) == 0
    monkeypatch.setenv("LINKWATCH_HOME", str(tmp_path / ".linkwatch-demo"))
    names: dict[str, object] = {}
    for source in _code(notebook):
        exec(compile(source, str(notebook), "exec"), names)
    unsaid = names["unsaid"]
    assert list(unsaid) == [0, 0, 0, 0]  # type: ignore[call-overload]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_holds_no_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def _code(notebook: Path) -> list[str]:
    return ["".join(c["source"]) for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
