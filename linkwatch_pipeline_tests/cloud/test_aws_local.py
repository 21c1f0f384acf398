"""`make aws-local`, small in the suite and with the whole handbook as a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.cloud.aws_local import Account, Play, cloud_with_roles, handbook_links


def play(folder: Path, links: list[str]) -> Account:
    (folder / "cloud").mkdir()
    with cloud_with_roles(folder / "cloud") as cloud:
        return Play(cloud, folder, links).run()


@pytest.mark.timeout(300)
def test_a_week_of_some_links_is_deployed_fired_checked_told_and_accounted_for(tmp_path: Path) -> None:
    """About a second a link, most of it waiting: the emulator's mapping receives one message after the other."""
    links = handbook_links(60)
    account = play(tmp_path, links)
    assert account.wrong == (), account.to_text()
    assert (account.links, account.notices) == (len(links), {"sent": account.transitions})
    assert account.hosts >= 15
    assert account.transitions


def test_the_links_of_the_usual_play_stand_on_many_hosts() -> None:
    from linkwatch_pipeline_tests.cloud.aws_local import place_of

    links = handbook_links(60)
    assert 55 <= len(links) <= 60
    assert len({place_of(url)[0] for url in links}) >= 15


@pytest.mark.campaign
def test_a_week_of_the_whole_handbook(tmp_path: Path) -> None:
    account = play(tmp_path, handbook_links(None))
    assert account.wrong == (), account.to_text()
