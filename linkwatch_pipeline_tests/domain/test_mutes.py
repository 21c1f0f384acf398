"""Mutes: what they cover, and until when."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.mutes import Mute, check_until, mute_of
from linkwatch_pipeline_tests.builders import MONDAY, after


def a_mute(target: str = "link:guide", **fields: Any) -> Mute:
    given = {"reason": "r", "muted_by": None, "since": MONDAY, "until": after(days=7), **fields}
    return Mute(target=target, **given)


def test_a_mute_names_a_link_or_a_host() -> None:
    assert (a_mute("link:guide").link_id, a_mute("link:guide").host) == ("guide", None)
    assert (a_mute("host:a.example").link_id, a_mute("host:a.example").host) == (None, "a.example")


def test_a_link_is_quiet_while_it_or_its_host_is_muted() -> None:
    link, host = a_mute(), a_mute("host:a.example", until=after(days=9))
    assert mute_of([link, host], "guide", "a.example", now=after(days=1)) == host
    assert mute_of([link, host], "guide", "b.example", now=after(days=1)) == link
    assert mute_of([link, host], "other", "b.example", now=after(days=1)) is None
    assert mute_of([link], "guide", "a.example", now=after(days=7)) is None


def test_a_mute_that_a_person_ended_is_over_then() -> None:
    ended = a_mute(ended_at=after(days=2))
    assert ended.over_at == after(days=2)
    assert not ended.is_active(after(days=2))
    assert a_mute(ended_at=after(days=20)).over_at == after(days=7)


@pytest.mark.parametrize(
    ("written", "until"),
    [
        ("2026-10-05", datetime.fromisoformat("2026-10-05T00:00:00+00:00")),
        ("2026-10-05T12:00:00Z", datetime.fromisoformat("2026-10-05T12:00:00+00:00")),
        ("2026-10-05T12:00:00+02:00", datetime.fromisoformat("2026-10-05T10:00:00+00:00")),
        ("2027-09-28", datetime.fromisoformat("2027-09-28T00:00:00+00:00")),
    ],
)
def test_an_end_is_a_day_or_a_moment(written: str, until: datetime) -> None:
    assert check_until(written, now=MONDAY) == until


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("2026-09-28", "over already"),
        ("2026-09-28T09:00:00Z", "over already"),
        ("2027-10-01", "too far away"),
        ("soon", "not a day"),
        ("2026-10-05T12:00:00", "not a day"),
        ("2026-W41", "not a day"),
        ("", "not a day"),
    ],
)
def test_an_end_that_is_no_moment_of_the_next_year_is_refused(written: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        check_until(written, now=MONDAY)
    assert refused.value.field == "until"
    assert "2026-10-12" in refused.value.mend
