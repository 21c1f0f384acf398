"""Homes with a terminal in front of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal whose home does not exist yet."""
    return Terminal(tmp_path / "home", capsys)


@pytest.fixture
def fixture_home(terminal: Terminal) -> Terminal:
    """A terminal on a fixture home for 127.0.0.1:8765."""
    terminal.fine("init", "--fixture", "127.0.0.1:8765")
    return terminal
