"""Every drill goes as promised."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

import linkwatch_pipeline_tests.bench.__main__ as bench
import linkwatch_pipeline_tests.drills.__main__ as drills
from linkwatch_pipeline_tests.drills.__main__ import DRILLS
from linkwatch_pipeline_tests.drills.account import Account, Drill


@pytest.mark.parametrize(("module", "work"), [(drills, "_play_all"), (bench, "_measure")], ids=["drills", "bench"])
def test_sigterm_ends_it_as_an_interrupt(
    module: ModuleType, work: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What lies in its temporary folder goes when it is unwound."""

    def long_work(_: list[str]) -> int:
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler  # or the next line ends the tests
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it goes on")

    monkeypatch.setattr(module, work, long_work)
    monkeypatch.setattr(sys, "argv", ["it"])
    assert module.main() == 130
    assert capsys.readouterr().err.startswith("interrupted; ")


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.name)
def test_a_drill_goes_as_promised(drill: Drill, tmp_path: Path) -> None:
    account = Account()
    drill.play(tmp_path, account)
    assert account.checks >= 4
