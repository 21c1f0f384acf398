"""A handbook watched for four weeks: a share of 222 links in the suite, the real one as a campaign."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from linkwatch_pipeline_tests.campaigns.fates import FATES, SIGN_IN, WEEKS, host_of
from linkwatch_pipeline_tests.campaigns.generated_pages import BUSIEST, write_pages
from linkwatch_pipeline_tests.campaigns.handbook_weeks import (
    HANDBOOK,
    WHOLE,
    HandbookWeeks,
    Scale,
    watched_handbook,
)

EXCERPT = Path(__file__).parent.parent / "data" / "handbook" / "18f"
SHARE = Scale(cooldown=0.01, service=0.005, throttling=0, most_busy=12, sign_in_one_in=4, batches=1)


def test_four_weeks_of_a_small_handbook_go_as_the_oracle_says(tmp_path: Path) -> None:
    handbook = tmp_path / "handbook"
    shutil.copytree(EXCERPT, handbook)
    write_pages(handbook)
    with watched_handbook(tmp_path, handbook, SHARE) as weeks:
        hosts = Counter(map(host_of, weeks.links))
        assert len(weeks.links) == 222
        assert hosts.most_common(1)[0][1] == BUSIEST
        assert set(FATES) < {fate.text for fate in weeks.script.fates.values()}
        told, retries = _play_all(weeks)
        assert sum(host == SIGN_IN for host, _ in weeks.script.hops) > 20
    assert all(count > 10 for count in told)
    assert retries == [0, 0, 1, 0]


@pytest.mark.campaign
@pytest.mark.skipif(not HANDBOOK.is_dir(), reason="the 18F handbook does not lie beside the repository")
def test_four_weeks_of_the_whole_18f_handbook_go_as_the_oracle_says(tmp_path: Path) -> None:
    with watched_handbook(tmp_path, HANDBOOK, WHOLE) as weeks:
        assert len(weeks.links) > 1600
        assert sum(host == SIGN_IN for host, _ in weeks.script.hops) > 200
        told, retries = _play_all(weeks)
    assert all(count > 100 for count in told)
    assert retries == [0, 3, 1, 0]


def _play_all(weeks: HandbookWeeks) -> tuple[list[int], list[int]]:
    """How many notices and how many retry runs each week had; everything else is compared on the way."""
    told, retries = [], []
    for number in range(len(WEEKS)):
        week, (weekly, *rest) = weeks.play(number)
        # How much more than its bound depends on the machine; less would be a rude week, or a wrong bound.
        assert weekly.ratio >= 1, weekly
        told.append(len(week.told))
        retries.append(len(rest))
    return told, retries
