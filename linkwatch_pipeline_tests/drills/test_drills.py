"""Every drill goes as promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.drills.__main__ import DRILLS
from linkwatch_pipeline_tests.drills.account import Account, Drill


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.name)
def test_a_drill_goes_as_promised(drill: Drill, tmp_path: Path) -> None:
    account = Account()
    drill.play(tmp_path, account)
    assert account.checks >= 4
