"""SPEC 4's table, row by row, and what `classify` never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.outcomes import Outcome, classify
from linkwatch_pipeline.domain.reasons import Reason

STATUS = st.integers(100, 599)


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        (200, Outcome.REACHABLE, None),
        (204, Outcome.REACHABLE, None),
        (299, Outcome.REACHABLE, None),
        (404, Outcome.BROKEN, Reason.GONE),
        (410, Outcome.BROKEN, Reason.GONE),
        (429, Outcome.THROTTLED, Reason.RATE_LIMITED),
        (401, Outcome.UNCERTAIN, Reason.AUTH),
        (403, Outcome.UNCERTAIN, Reason.AUTH),
        (407, Outcome.UNCERTAIN, Reason.AUTH),
        (500, Outcome.UNCERTAIN, Reason.SERVER_ERROR),
        (503, Outcome.UNCERTAIN, Reason.SERVER_ERROR),
        (599, Outcome.UNCERTAIN, Reason.SERVER_ERROR),
        (100, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (300, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (304, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (400, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (405, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (418, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (451, Outcome.UNCERTAIN, Reason.UNEXPECTED_STATUS),
        (None, Outcome.UNCERTAIN, Reason.TIMEOUT),
    ],
)
def test_a_status_has_one_meaning(status: int | None, outcome: Outcome, reason: Reason | None) -> None:
    verdict = classify(status)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("marker_found", "content_complete", "outcome", "reason"),
    [
        (True, True, Outcome.REACHABLE, None),
        (True, False, Outcome.REACHABLE, None),  # found in the first 64 KiB: that is enough
        (None, False, Outcome.REACHABLE, None),  # nothing expected: a long page is a page
        (False, True, Outcome.CONTENT_CHANGED, Reason.MARKER_MISSING),
        (False, False, Outcome.UNCERTAIN, Reason.INCOMPLETE_CONTENT),
    ],
)
def test_a_marker_decides_what_a_success_means(
    marker_found: bool | None, content_complete: bool, outcome: Outcome, reason: Reason | None
) -> None:
    verdict = classify(200, marker_found=marker_found, content_complete=content_complete)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@given(status=STATUS, marker_found=st.none() | st.booleans(), complete=st.booleans(), challenged=st.booleans())
def test_only_404_and_410_break_and_only_2xx_reach(
    status: int, marker_found: bool | None, complete: bool, challenged: bool
) -> None:
    verdict = classify(status, marker_found=marker_found, content_complete=complete, challenged=challenged)
    if verdict.outcome is Outcome.BROKEN:
        assert status in (404, 410)
    if verdict.outcome in (Outcome.REACHABLE, Outcome.CONTENT_CHANGED):
        assert 200 <= status <= 299
    assert (verdict.reason is None) is (verdict.outcome is Outcome.REACHABLE)


@given(status=st.none() | STATUS, failure=st.sampled_from(Reason), marker_found=st.none() | st.booleans())
def test_a_look_that_failed_is_uncertain_whatever_was_seen(
    status: int | None, failure: Reason, marker_found: bool | None
) -> None:
    verdict = classify(status, failure=failure, marker_found=marker_found)
    assert (verdict.outcome, verdict.reason) == (Outcome.UNCERTAIN, failure)


@pytest.mark.parametrize("status", [200, 403, 404, 503])
def test_a_bot_challenge_says_nothing_about_the_page(status: int) -> None:
    verdict = classify(status, challenged=True)
    assert (verdict.outcome, verdict.reason) == (Outcome.UNCERTAIN, Reason.BOT_CHALLENGE)


def test_a_challenge_with_429_is_still_a_request_to_slow_down() -> None:
    assert classify(429, challenged=True).outcome is Outcome.THROTTLED
