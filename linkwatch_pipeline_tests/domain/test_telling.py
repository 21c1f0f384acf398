"""What was told, not what was seen, decides what is told next."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from linkwatch_pipeline.domain.links import LinkState
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus, digest_id, run_of_digest
from linkwatch_pipeline.domain.telling import (
    is_lone_recovery,
    is_overtaken,
    told_state,
    untold_difference,
    waits_for_earlier,
)
from linkwatch_pipeline_tests.builders import RETRY_ID, RUN_ID, a_link, after
from linkwatch_pipeline_tests.mail_builders import a_notice, a_recovery


def story(*statuses: str, next_attempt_at: datetime | None = None) -> list[Notice]:
    """A break, its recovery, the next break and so on, with these delivery statuses."""
    return [
        replace(
            (a_notice if number % 2 == 0 else a_recovery)(transition_id=f"guide:{number + 9}"),
            status=NoticeStatus(status),
            next_attempt_at=next_attempt_at,
        )
        for number, status in enumerate(statuses)
    ]


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ((), LinkState.REACHABLE),
        (("sent",), LinkState.BROKEN),
        (("delivered", "muted"), LinkState.BROKEN),
        (("sent", "sent"), LinkState.REACHABLE),
        (("muted", "discarded"), LinkState.REACHABLE),
        (("unknown", "muted"), LinkState.BROKEN),
        (("sending",), LinkState.BROKEN),
        (("complained",), LinkState.BROKEN),
        (("bounced",), LinkState.REACHABLE),
        (("failed",), LinkState.REACHABLE),
        (("sent", "sent", "pending"), LinkState.REACHABLE),  # the tenth version sorts after the ninth
    ],
)
def test_the_owner_knows_what_was_accepted_last(statuses: tuple[str, ...], told: LinkState) -> None:
    assert told_state(story(*statuses)) is told


@pytest.mark.parametrize(
    ("earlier", "waits"),
    [
        ("pending", True),
        ("claimed", True),
        ("sending", True),
        ("held", True),
        ("sent", False),
        ("failed", False),
        ("muted", False),
        ("discarded", False),
        ("unknown", False),  # given up: a person decides
    ],
)
def test_mails_about_a_link_keep_their_order(earlier: str, waits: bool) -> None:
    before, notice = story(earlier, "pending")
    assert waits_for_earlier(notice, [before, notice]) is waits
    assert not waits_for_earlier(before, [before, notice])


def test_a_mail_in_doubt_that_will_be_repeated_goes_first() -> None:
    before, notice = story("unknown", "pending", next_attempt_at=after(hours=1))
    assert waits_for_earlier(notice, [before, notice])


@pytest.mark.parametrize(
    ("break_", "alone"),
    [("failed", True), ("bounced", True), ("muted", True), ("discarded", True), ("sent", False), ("unknown", False)],
)
def test_a_recovery_whose_break_nobody_heard_of_is_not_announced_alone(break_: str, alone: bool) -> None:
    told = story(break_, "pending")
    assert is_lone_recovery(told[1], told) is alone
    assert not is_lone_recovery(told[0], told)


def test_after_a_mute_only_a_difference_is_told() -> None:
    broken, reachable = a_link(state=LinkState.BROKEN), a_link(state=LinkState.REACHABLE)
    assert untold_difference(broken, []) is None
    muted = story("muted")
    assert untold_difference(broken, muted) == muted[0]
    assert untold_difference(reachable, story("muted", "muted")) is None
    recovered = story("sent", "muted")
    assert untold_difference(reachable, recovered) == recovered[1]
    assert untold_difference(broken, story("sent", "muted", "muted")) is None
    assert untold_difference(broken, story("muted", "muted", "pending")) is None  # is told anyway
    assert untold_difference(a_link(state=LinkState.UNKNOWN), muted) is None  # the link has moved since


def test_a_break_is_not_told_after_its_recovery_was_settled_without_a_word() -> None:
    for later in ("muted", "discarded"):
        told = story("pending", later)
        assert is_overtaken(told[0], told)
        assert not is_overtaken(told[1], told)
    assert not is_overtaken(story("pending", "pending")[0], story("pending", "pending"))


def test_a_digests_id_names_its_run_and_no_transitions_id_does() -> None:
    one, other = digest_id("docs", RETRY_ID, "a:1"), digest_id("docs", RETRY_ID, "b:1")
    assert one != other
    assert one != digest_id("web", RETRY_ID, "a:1")
    assert run_of_digest(one) == RETRY_ID
    assert run_of_digest(digest_id("docs", RUN_ID, "a:1")) == RUN_ID
    assert run_of_digest("guide:2") is None
    assert run_of_digest("digest:2") is None
