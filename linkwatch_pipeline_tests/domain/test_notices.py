"""Who may take a notice, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.notices import (
    CLAIM_FOR,
    NoticeStatus,
    claimed,
    is_claimable,
    is_retryable_unknown,
    retry_wait,
)
from linkwatch_pipeline_tests.builders import MONDAY, after
from linkwatch_pipeline_tests.mail_builders import a_notice

S = NoticeStatus
SOON, NOW, PAST = after(seconds=1), MONDAY, after(seconds=-1)


@pytest.mark.parametrize(
    ("release_at", "next_attempt_at", "claimable"),
    [
        (NOW, None, True),
        (PAST, None, True),
        (SOON, None, False),
        (PAST, NOW, True),
        (PAST, SOON, False),
        (SOON, PAST, False),
    ],
)
def test_a_pending_notice_waits_for_its_release_and_its_next_attempt(
    release_at: datetime, next_attempt_at: datetime | None, claimable: bool
) -> None:
    assert is_claimable(a_notice(release_at=release_at, next_attempt_at=next_attempt_at), NOW) is claimable


@pytest.mark.parametrize("status", [S.CLAIMED, S.SENDING])
@pytest.mark.parametrize(("claim_until", "claimable"), [(SOON, False), (NOW, True), (PAST, True), (None, False)])
def test_a_notice_in_somebodys_hands_is_free_when_the_claim_ends(
    status: NoticeStatus, claim_until: datetime | None, claimable: bool
) -> None:
    notice = a_notice(status=status, claim_until=claim_until)
    assert is_claimable(notice, NOW) is claimable
    assert is_retryable_unknown(notice, NOW) is (claimable and status is S.SENDING)


@pytest.mark.parametrize(("next_attempt_at", "claimable"), [(None, False), (SOON, False), (NOW, True), (PAST, True)])
def test_an_unknown_notice_waits_for_word_first(next_attempt_at: datetime | None, claimable: bool) -> None:
    notice = a_notice(status=S.UNKNOWN, next_attempt_at=next_attempt_at)
    assert is_claimable(notice, NOW) is claimable
    assert is_retryable_unknown(notice, NOW) is claimable


FREE_TO_TAKE = {S.PENDING, S.CLAIMED, S.SENDING, S.UNKNOWN}


@pytest.mark.parametrize("status", [status for status in S if status not in FREE_TO_TAKE])
def test_every_other_notice_is_left_alone_for_ever(status: NoticeStatus) -> None:
    long_ago = after(days=-9)
    notice = a_notice(status=status, release_at=long_ago, next_attempt_at=long_ago, claim_until=long_ago)
    assert not is_claimable(notice, NOW)


def test_a_claim_names_its_holder_and_outlives_a_provider_call() -> None:
    notice = claimed(a_notice(), by="sender-1", now=MONDAY)
    assert (notice.status, notice.claimed_by, notice.claim_until) == (S.CLAIMED, "sender-1", MONDAY + CLAIM_FOR)
    assert replace(notice, status=S.PENDING, claimed_by=None, claim_until=None) == a_notice()
    assert timedelta(seconds=60) <= CLAIM_FOR < timedelta(minutes=5)


@given(st.integers(1, 10_000))
def test_each_wait_is_at_least_as_long_as_the_one_before(attempts: int) -> None:
    assert timedelta(minutes=1) <= retry_wait(attempts) <= retry_wait(attempts + 1) <= timedelta(hours=1)


def test_the_waits_are_those_of_the_documents() -> None:
    assert [retry_wait(n) // timedelta(minutes=1) for n in range(1, 6)] == [1, 5, 15, 60, 60]


def test_settled_is_what_needs_neither_a_sender_nor_a_person() -> None:
    assert {status for status in S if status.is_settled} == {
        S.SENT, S.DELIVERED, S.BOUNCED, S.COMPLAINED, S.MUTED, S.DISCARDED,
    }  # fmt: skip
