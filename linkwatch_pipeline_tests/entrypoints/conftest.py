"""Homes with a terminal in front of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal whose home does not exist yet."""
    return Terminal(tmp_path / "home", capsys)


@pytest.fixture
def midweek(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The machine's clock goes from Wednesday of this week on: none ends or begins during a test. The moment."""
    now, real = SystemClock().now(), SystemClock.now
    wednesday = week_start(now) + timedelta(days=2)
    monkeypatch.setattr(SystemClock, "now", lambda clock: real(clock) + (wednesday - now))
    return wednesday


@pytest.fixture
def fixture_home(terminal: Terminal) -> Terminal:
    """A terminal on a fixture home for 127.0.0.1:8765."""
    terminal.fine("init", "--fixture", "127.0.0.1:8765")
    return terminal
