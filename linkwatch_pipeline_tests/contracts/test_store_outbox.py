"""What every store promises about notices (SPEC 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.notices import CLAIM_FOR, Notice, NoticeStatus, claimed
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import RUN_ID, a_link, after, an_observation, dispatched

CREATED = after(minutes=1)


def broken(store: Store, link_id: str = "guide", *, minutes: float = 1, in_run: bool = False) -> Notice:
    """A notice of a link that broke so many minutes after MONDAY."""
    link = a_link(
        link_id,
        f"https://docs.example.com/{link_id}",
        places=(Place(file="docs/guide.md", line=12),),
        also_used_by=("sre",),
    )
    store.save_link(link, replaces=None)
    job = dispatched(store, [link])[0] if in_run else None
    result = store.record(an_observation(link, 404, job=job), default_confirm=1, now=after(minutes=minutes))
    assert result.transition is not None
    return notice_of(store, result.transition.id)


def notice_of(store: Store, transition_id: str = "guide:1") -> Notice:
    notice = store.get_notice(transition_id)
    assert notice is not None
    return notice


def put_as(store: Store, notice: Notice, **fields: Any) -> Notice:
    """Bring a pending notice into a state in which a sender left it."""
    mine = store.claim_notice(notice.transition_id, by="setup", now=after(hours=1))
    assert mine is not None
    left = replace(mine, **fields)
    assert store.save_notice(left, claimed_by="setup")
    return left


class TestListing:
    def test_they_come_oldest_first_then_by_id_filtered_as_asked(self, store: Store) -> None:
        for link_id, minutes in [("c", 3), ("b", 1), ("a", 3), ("d", 2)]:
            broken(store, link_id, minutes=minutes)

        def ids(**filters: Any) -> list[str]:
            return [notice.transition_id for notice in store.notices(**filters)]

        assert ids() == ids(unsettled_only=True) == ["b:1", "d:1", "a:1", "c:1"]
        assert ids(link_id="a") == ["a:1"]
        assert ids(link_id="nobody") == ids(run_id=RUN_ID) == []

    def test_a_runs_notices_are_those_of_its_jobs(self, store: Store) -> None:
        broken(store, "by-hand")
        broken(store, "in-run", in_run=True)
        assert [n.transition_id for n in store.notices(run_id=RUN_ID)] == ["in-run:1"]
        assert list(store.notices(run_id=RUN_ID, link_id="by-hand")) == []

    @pytest.mark.parametrize("status", list(NoticeStatus))
    def test_unsettled_are_those_that_somebody_still_has_to_see_to(self, store: Store, status: NoticeStatus) -> None:
        left = put_as(store, broken(store), status=status)
        settled = status in {
            NoticeStatus.SENT,
            NoticeStatus.DELIVERED,
            NoticeStatus.BOUNCED,
            NoticeStatus.COMPLAINED,
            NoticeStatus.MUTED,
            NoticeStatus.DISCARDED,
        }
        assert list(store.notices(unsettled_only=True)) == ([] if settled else [left])
        assert list(store.notices(unsettled_only=True, link_id="guide")) == ([] if settled else [left])
        assert list(store.notices()) == [left]

    def test_no_notice_is_none(self, store: Store) -> None:
        assert store.get_notice("guide:1") is None
        assert store.claim_notice("guide:1", by="me", now=CREATED) is None


class TestClaiming:
    def test_who_claims_first_holds_it(self, store: Store) -> None:
        notice = broken(store)
        mine = store.claim_notice("guide:1", by="one", now=CREATED)
        assert mine == claimed(notice, by="one", now=CREATED) == notice_of(store)
        assert mine is not None
        assert (mine.status, mine.claimed_by, mine.claim_until) == (NoticeStatus.CLAIMED, "one", CREATED + CLAIM_FOR)
        assert store.claim_notice("guide:1", by="two", now=CREATED) is None
        assert notice_of(store) == mine

    def test_two_stores_on_one_storage_agree_who_was_first(self, open_store: Callable[[], Store]) -> None:
        one, two = open_store(), open_store()
        try:
            broken(one)
            assert two.claim_notice("guide:1", by="two", now=CREATED) is not None
            assert one.claim_notice("guide:1", by="one", now=CREATED) is None
        finally:
            one.close()
            two.close()

    @pytest.mark.parametrize(
        ("fields", "seconds", "claimable"),
        [
            ({"status": NoticeStatus.PENDING, "release_at": after(hours=2)}, 7199, False),
            ({"status": NoticeStatus.PENDING, "release_at": after(hours=2)}, 7200, True),
            ({"status": NoticeStatus.PENDING, "next_attempt_at": after(hours=2)}, 7199, False),
            ({"status": NoticeStatus.PENDING, "next_attempt_at": after(hours=2)}, 7200, True),
            ({"status": NoticeStatus.CLAIMED, "claim_until": after(hours=2)}, 7199, False),
            ({"status": NoticeStatus.CLAIMED, "claim_until": after(hours=2)}, 7200, True),
            ({"status": NoticeStatus.SENDING, "claim_until": after(hours=2)}, 7199, False),
            ({"status": NoticeStatus.SENDING, "claim_until": after(hours=2)}, 7200, True),
            ({"status": NoticeStatus.UNKNOWN, "next_attempt_at": after(hours=2)}, 7199, False),
            ({"status": NoticeStatus.UNKNOWN, "next_attempt_at": after(hours=2)}, 7200, True),
            ({"status": NoticeStatus.UNKNOWN, "next_attempt_at": None}, 999_999, False),
            *(({"status": s}, 999_999, False) for s in NoticeStatus if s.is_settled),
            ({"status": NoticeStatus.FAILED}, 999_999, False),
            ({"status": NoticeStatus.HELD}, 999_999, False),
        ],
        ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
    )
    def test_it_can_be_claimed_when_its_state_and_its_times_allow(
        self, store: Store, fields: dict[str, Any], seconds: int, claimable: bool
    ) -> None:
        left = put_as(store, broken(store), **fields)
        mine = store.claim_notice("guide:1", by="me", now=after(seconds=seconds))
        assert (mine is not None) is claimable
        assert notice_of(store) == (mine if claimable else left)

    def test_a_notice_is_not_claimed_before_its_release(self, store: Store) -> None:
        broken(store)
        assert store.claim_notice("guide:1", by="me", now=CREATED - timedelta(microseconds=1)) is None


class TestSaving:
    def test_who_holds_it_writes_how_its_delivery_stands(self, store: Store) -> None:
        broken(store)
        mine = store.claim_notice("guide:1", by="me", now=CREATED)
        assert mine is not None
        written = replace(
            mine,
            status=NoticeStatus.UNKNOWN,
            attempts=1,
            recipient="docs@example.com",
            provider_id="0100-abc",
            last_error="connection lost",
            next_attempt_at=after(hours=1),
            sent_at=after(minutes=2),
            claim_until=None,
        )
        assert store.save_notice(written, claimed_by="me") is True
        assert notice_of(store) == written

    def test_it_may_be_given_back(self, store: Store) -> None:
        notice = broken(store)
        mine = store.claim_notice("guide:1", by="me", now=CREATED)
        assert mine is not None
        assert store.save_notice(notice, claimed_by="me") is True
        assert notice_of(store) == notice
        assert store.save_notice(mine, claimed_by="me") is False

    def test_a_claim_that_was_taken_over_writes_nothing(self, store: Store) -> None:
        broken(store)
        mine = store.claim_notice("guide:1", by="slow", now=CREATED)
        theirs = store.claim_notice("guide:1", by="quick", now=CREATED + CLAIM_FOR)
        assert mine is not None
        assert store.save_notice(replace(mine, status=NoticeStatus.SENT), claimed_by="slow") is False
        assert notice_of(store) == theirs

    def test_a_notice_nobody_holds_or_knows_is_not_written(self, store: Store) -> None:
        notice = broken(store)
        assert store.save_notice(replace(notice, attempts=5), claimed_by="me") is False
        assert store.save_notice(replace(notice, transition_id="guide:9"), claimed_by="me") is False
        assert list(store.notices()) == [notice]

    def test_what_the_mail_says_is_never_rewritten(self, store: Store) -> None:
        notice = broken(store)
        mine = store.claim_notice("guide:1", by="me", now=CREATED)
        assert mine is not None
        other_words = replace(mine, url="https://evil.example.com/", owner="sre", places=(), observed_status=200)
        assert store.save_notice(replace(other_words, status=NoticeStatus.SENT), claimed_by="me") is True
        assert notice_of(store) == replace(mine, status=NoticeStatus.SENT)
        assert notice_of(store).url == notice.url


class TestUpdating:
    def test_a_notice_is_rewritten_as_long_as_it_is_as_it_was_read(self, store: Store) -> None:
        left = put_as(store, broken(store), status=NoticeStatus.UNKNOWN, claimed_by=None, attempts=1)
        standing = replace(left, status=NoticeStatus.DELIVERED, provider_id="0100-abc", sent_at=after(minutes=2))
        assert store.update_notice(standing, replaces=left) is True
        assert notice_of(store) == standing
        assert store.update_notice(replace(standing, attempts=9), replaces=left) is False
        assert notice_of(store) == standing

    def test_its_holder_cannot_write_over_what_came_in_between(self, store: Store) -> None:
        broken(store)
        mine = store.claim_notice("guide:1", by="me", now=CREATED)
        assert mine is not None
        attempt = replace(mine, status=NoticeStatus.SENDING, attempts=1)
        assert store.save_notice(attempt, claimed_by="me") is True
        told = replace(attempt, status=NoticeStatus.DELIVERED, claimed_by=None, claim_until=None)
        assert store.update_notice(told, replaces=attempt) is True
        assert store.save_notice(replace(attempt, status=NoticeStatus.UNKNOWN), claimed_by="me") is False
        assert notice_of(store) == told

    def test_nothing_is_made_of_a_notice_that_is_not_there(self, store: Store) -> None:
        notice = broken(store)
        absent = replace(notice, transition_id="guide:9")
        assert store.update_notice(absent, replaces=absent) is False
        assert list(store.notices()) == [notice]

    def test_what_the_mail_says_stays(self, store: Store) -> None:
        notice = broken(store)
        assert store.update_notice(replace(notice, url="https://evil.example.com/", attempts=1), replaces=notice)
        assert notice_of(store) == replace(notice, attempts=1)


def test_a_notice_outlives_its_observation(store: Store) -> None:
    notice = broken(store)
    store.prune_observations(week=after(), expect_rows=1)
    assert list(store.observations()) == []
    assert list(store.notices()) == [notice]
    assert [t.id for t in store.transitions()] == ["guide:1"]
