"""What was refused for good is no dead end: a new address, or a person's word, sends it after all."""

from __future__ import annotations

from datetime import timedelta

from linkwatch_pipeline.domain.errors import DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.use_cases.mute import mute
from linkwatch_pipeline_tests.use_cases.office import Office, refusal

REFUSED = refusal(DeliveryFailure.PERMANENT)


def move(office: Office, *, delivery: Delivery = Delivery.EACH) -> None:
    office.store.put_owner(Owner(team="docs-team", address="new@example.com", delivery=delivery))


def refuse(office: Office, link_id: str, status: int | None = None) -> str:
    """A change of a link whose mail is refused for good."""
    name = office.break_link(link_id) if status is None else office.see(link_id, status)
    office.provider.answers = [REFUSED]
    assert office.deliver().failed == 1
    return name


def test_a_new_address_gets_what_the_old_one_refused(office: Office) -> None:
    name = refuse(office, "guide")
    assert office.deliver().sent == 0
    move(office)
    assert office.deliver().unsent == 0
    assert office.notice(name).status is NoticeStatus.SENT
    assert [mail.recipient for mail in office.provider.accepted] == ["new@example.com"]


def test_a_refused_digest_goes_whole_to_the_new_address(office: Office) -> None:
    office.employ(delivery=Delivery.DIGEST)
    office.watch(a="https://docs.example.com/a", b="https://docs.example.com/b")
    office.run({"a": 404, "b": 404})
    office.provider.answers = [REFUSED]
    assert office.deliver().failed == 2
    move(office, delivery=Delivery.DIGEST)
    assert office.deliver().sent == 2
    assert [mail.transition_ids for mail in office.provider.accepted] == [("a:1", "b:1")]


def test_without_a_new_address_it_waits_for_a_persons_word(office: Office) -> None:
    name = refuse(office, "guide")
    assert office.deliver().waiting == 1
    assert office.deliver(refused_too=True).sent == 1
    assert office.notice(name).status is NoticeStatus.SENT


def test_a_break_that_is_over_is_not_told_after_all(office: Office) -> None:
    refuse(office, "guide")
    office.see("guide", 200)
    office.deliver()
    move(office)
    assert office.deliver().unsent == 0
    assert set(office.statuses().values()) == {NoticeStatus.DISCARDED}
    assert office.provider.told == []


def test_a_recovery_that_is_over_is_not_told_after_the_next_break(office: Office) -> None:
    first = office.break_link("guide")
    office.deliver()
    recovery = refuse(office, "guide", 200)
    again = office.see("guide", 404)
    office.deliver()
    move(office)
    assert office.deliver().unsent == 0
    assert office.notice(recovery).status is NoticeStatus.DISCARDED
    assert office.provider.told == [first, again]


def test_what_is_muted_stays_untold(office: Office) -> None:
    refuse(office, "guide")
    now = office.clock.now()
    mute(office.store, "guide", until=(now + timedelta(days=2)).isoformat(), reason="moving", by=None, now=now)
    move(office)
    assert office.deliver().muted == 1
    assert office.provider.told == []
