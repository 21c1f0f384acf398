"""SPEC 5 and issue 2: killed at any moment and resumed, a week leaves what it leaves without a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.gates.crash import walk_crashes


def test_a_week_killed_at_twenty_random_moments_ends_as_without_a_crash(tmp_path: Path) -> None:
    walk_crashes(tmp_path, range(1))


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_weeks_killed_at_hundreds_of_moments_end_as_without_a_crash(tmp_path: Path) -> None:
    walk_crashes(tmp_path, range(1, 21))
