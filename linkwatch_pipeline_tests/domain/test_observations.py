"""What makes two records of one job the same: the content, never the times."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from linkwatch_pipeline.domain.observations import body_hash
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline_tests.builders import MONDAY, a_link, an_observation

SEEN = an_observation(a_link(), 200, marker_found=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"started_at": MONDAY - timedelta(days=1)},
        {"observed_at": MONDAY + timedelta(days=1)},
        {"latency_ms": 9_999},
        {"bytes_read": 7},
        {"final_url": "https://elsewhere.example/"},
        {"content_type": "text/html"},
        {"outcome": Outcome.UNCERTAIN, "reason": Reason.BOT_CHALLENGE},
        {"rules_version": 99},
    ],
)
def test_a_replay_may_differ_in_times_and_circumstances(changes: dict[str, Any]) -> None:
    assert replace(SEEN, **changes).content_digest == SEEN.content_digest


@pytest.mark.parametrize(
    "changes",
    [
        {"link_id": "setup"},
        {"url": "https://docs.example.com/other"},
        {"sequence": 1},
        {"config_version": 2},
        {"status": 201},
        {"status": None},
        {"marker_found": False},
        {"marker_found": None},
        {"content_hash": body_hash(b"other bytes")},
        {"content_hash": None},
    ],
)
def test_other_content_is_another_record(changes: dict[str, Any]) -> None:
    assert replace(SEEN, **changes).content_digest != SEEN.content_digest


def test_a_marker_counts_only_where_it_can_be_found() -> None:
    gone = replace(SEEN, status=404, marker_found=None)
    assert replace(gone, marker_found=False).content_digest == gone.content_digest


def test_the_digest_stays_the_same_for_ever() -> None:
    """Jobs keep it for 400 days: another recipe would turn every replay into a conflict."""
    seen = an_observation(a_link(), 200, body=b"")
    assert seen.content_digest == "8b4b6a3d3065f5f2580749de51e13a9a411fee74840b56abb00b11b2bebb84a6"


def test_the_hash_is_that_of_the_bytes_read() -> None:
    assert body_hash(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("field", ["started_at", "observed_at"])
def test_an_observation_has_no_naive_times(field: str) -> None:
    naive: dict[str, Any] = {field: MONDAY.replace(tzinfo=None)}
    with pytest.raises(ValueError, match=field):
        replace(SEEN, **naive)
