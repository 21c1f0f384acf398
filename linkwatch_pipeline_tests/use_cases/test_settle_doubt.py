"""A mail in doubt that was given up is no dead end: a person says that it arrived, or has it sent again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from linkwatch_pipeline.domain.errors import ConflictingContent, DeliveryFailure, InvalidInput, LinkwatchError, NotFound
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.use_cases.deliver import DeliveryReport
from linkwatch_pipeline.use_cases.send_mail import MOST_ATTEMPTS_WITHOUT_WORD, WAIT_FOR_WORD
from linkwatch_pipeline.use_cases.settle_doubt import OUTLIVED_IN_DOUBT, settle_doubts
from linkwatch_pipeline_tests.use_cases.office import Office, refusal

LOST = refusal(DeliveryFailure.UNKNOWN)


def give_up(office: Office, notices: int = 1) -> None:
    """Have a mail's answers lost until it is given up."""
    office.provider.answers = [LOST] * MOST_ATTEMPTS_WITHOUT_WORD
    for _ in range(MOST_ATTEMPTS_WITHOUT_WORD + 1):
        assert office.deliver().unknown == notices
        office.clock.advance(WAIT_FOR_WORD)
    assert office.deliver().waiting == notices


def settle(office: Office, *, arrived: tuple[str, ...] = (), again: tuple[str, ...] = ()) -> list[Notice]:
    return settle_doubts(office.store, arrived=arrived, again=again, now=office.clock.now())


def test_one_that_arrived_is_delivered_and_never_sent_again(office: Office) -> None:
    name = office.break_link("guide")
    give_up(office)
    assert [notice.status for notice in settle(office, arrived=(name,))] == [NoticeStatus.DELIVERED]
    office.clock.advance(timedelta(days=1))
    assert office.deliver() == DeliveryReport()
    assert len(office.provider.accepted) == MOST_ATTEMPTS_WITHOUT_WORD


def test_one_that_did_not_is_sent_once_more_and_admits_to_a_repetition(office: Office) -> None:
    name = office.break_link("guide")
    give_up(office)
    settle(office, again=(name,))
    assert office.deliver() == DeliveryReport(sent=1)
    assert "may have this mail already" in office.provider.accepted[-1].text
    assert office.notice(name).attempts == MOST_ATTEMPTS_WITHOUT_WORD + 1


def test_each_word_is_good_for_one_attempt(office: Office) -> None:
    name = office.break_link("guide")
    give_up(office)
    for more in (1, 2):
        settle(office, again=(name,))
        office.provider.answers = [LOST]
        for _ in range(3):
            office.deliver()
            office.clock.advance(WAIT_FOR_WORD)
        assert office.notice(name).attempts == MOST_ATTEMPTS_WITHOUT_WORD + more


def test_a_refusal_after_many_lost_answers_goes_to_a_new_address_all_the_same(office: Office) -> None:
    name = office.break_link("guide")
    office.provider.answers = [*[LOST] * (MOST_ATTEMPTS_WITHOUT_WORD - 1), refusal(DeliveryFailure.PERMANENT)]
    for _ in range(MOST_ATTEMPTS_WITHOUT_WORD):
        office.deliver()
        office.clock.advance(WAIT_FOR_WORD)
    assert office.notice(name).status is NoticeStatus.FAILED
    office.store.put_owner(Owner(team="docs-team", address="new@example.com"))
    assert office.deliver() == DeliveryReport(sent=1)


def test_one_that_is_out_of_date_is_discarded_instead(office: Office) -> None:
    name = office.break_link("guide")
    give_up(office)
    office.see("guide", 200)
    (settled,) = settle(office, again=(name,))
    assert settled.status is NoticeStatus.DISCARDED
    assert OUTLIVED_IN_DOUBT in (settled.last_error or "")
    office.deliver()
    assert office.provider.told[-1] == "guide:2"


def test_what_is_said_of_one_notice_holds_for_its_whole_digest(office: Office) -> None:
    office.employ(delivery=Delivery.DIGEST)
    office.watch(a="https://docs.example.com/a", b="https://docs.example.com/b")
    office.run({"a": 404, "b": 404})
    give_up(office, notices=2)
    settle(office, again=("a:1",))
    assert office.deliver() == DeliveryReport(sent=2)
    assert office.provider.accepted[-1].transition_ids == ("a:1", "b:1")


@pytest.mark.parametrize(
    ("arrived", "again", "error", "words"),
    [
        (("guide:9",), (), NotFound, "there is no notice 'guide:9'"),
        ((), ("other:1",), ConflictingContent, "notice other:1 is pending"),
        (("guide:1",), ("guide:1",), InvalidInput, "arrived and to be sent again"),
        (("guide:1", "other:1"), (), ConflictingContent, "notice other:1 is pending"),
    ],
)
def test_nothing_is_written_if_anything_said_is_wrong(
    office: Office, arrived: tuple[str, ...], again: tuple[str, ...], error: type[LinkwatchError], words: str
) -> None:
    office.break_link("guide")
    give_up(office)
    office.break_link("other", url="https://docs.example.com/other")
    before = list(office.store.notices())
    with pytest.raises(error, match=words):
        settle(office, arrived=arrived, again=again)
    assert list(office.store.notices()) == before


def test_two_words_about_one_digest_are_refused(office: Office) -> None:
    office.employ(delivery=Delivery.DIGEST)
    office.watch(a="https://docs.example.com/a", b="https://docs.example.com/b")
    office.run({"a": 404, "b": 404})
    give_up(office, notices=2)
    with pytest.raises(InvalidInput, match="arrived and not"):
        settle(office, arrived=("a:1",), again=("b:1",))
