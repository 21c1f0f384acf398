"""Muting stops delivery, never state; afterwards what differs from what was told last is told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import ConflictingContent, DeliveryFailure, InvalidInput, NotFound
from linkwatch_pipeline.domain.links import LinkState
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, due_notices
from linkwatch_pipeline.use_cases.mute import acknowledge, active_mutes, lift_mutes, list_mutes, mute, unmute
from linkwatch_pipeline.use_cases.send_mail import WAIT_FOR_WORD
from linkwatch_pipeline.use_cases.set_aside import NEVER_TOLD, OVERTAKEN
from linkwatch_pipeline_tests.builders import MONDAY, URL, a_run
from linkwatch_pipeline_tests.use_cases.office import Office, refusal

DAY = timedelta(days=1)


@pytest.fixture
def guide(office: Office) -> Office:
    """A guide that was seen reachable."""
    office.watch(guide=URL)
    return office


def quiet(office: Office, target: str = "guide", *, days: int = 7) -> None:
    until = (office.clock.now() + days * DAY).isoformat()
    mute(office.store, target, until=until, reason="the site is being moved", by="ana", now=office.clock.now())


def speak(office: Office, target: str = "guide") -> None:
    unmute(office.store, target, now=office.clock.now())


def test_a_muted_break_is_told_when_the_mute_runs_out_and_it_is_still_broken(guide: Office) -> None:
    quiet(guide)
    guide.see("guide", 404)
    assert guide.deliver() == DeliveryReport(muted=1)
    assert guide.deliver() == DeliveryReport()
    link = guide.store.get_link("guide")
    assert link is not None
    assert link.state is LinkState.BROKEN
    guide.clock.advance(7 * DAY)
    assert guide.deliver() == DeliveryReport(sent=1)
    assert guide.provider.told == ["guide:1"]
    [ended] = guide.store.mutes()
    assert ended.lifted_at == guide.clock.now()  # looked through once


def test_what_came_and_went_while_nobody_wanted_to_know_is_never_told(guide: Office) -> None:
    quiet(guide)
    guide.see("guide", 404)
    guide.deliver()
    guide.see("guide", 200)
    guide.deliver()
    speak(guide)
    assert guide.deliver() == DeliveryReport()
    assert set(guide.statuses().values()) == {NoticeStatus.MUTED}


def test_a_recovery_under_a_mute_is_told_to_whoever_heard_of_the_break(guide: Office) -> None:
    guide.see("guide", 404)
    guide.deliver()
    quiet(guide)
    guide.see("guide", 200)
    assert guide.deliver() == DeliveryReport(muted=1)
    speak(guide)
    assert guide.deliver() == DeliveryReport(sent=1)
    assert guide.provider.told == ["guide:1", "guide:2"]


def test_a_break_that_was_told_is_not_told_again_after_a_mute(guide: Office) -> None:
    guide.see("guide", 404)
    guide.deliver()
    quiet(guide)
    guide.see("guide", 200)
    guide.see("guide", 404)
    assert guide.deliver() == DeliveryReport(muted=2)
    speak(guide)
    assert guide.deliver() == DeliveryReport()


def test_a_recovery_after_a_mute_whose_break_was_muted_is_not_announced_alone(guide: Office) -> None:
    quiet(guide)
    guide.see("guide", 404)
    guide.deliver()
    guide.clock.advance(8 * DAY)
    guide.see("guide", 200)  # before anybody looked at the mute that ran out
    assert guide.deliver() == DeliveryReport(discarded=1)
    assert guide.notice("guide:2").last_error == NEVER_TOLD


def test_a_recovery_whose_break_was_refused_for_good_is_not_announced_alone(guide: Office) -> None:
    guide.see("guide", 404)
    guide.provider.answers = [refusal(DeliveryFailure.PERMANENT)]
    assert guide.deliver() == DeliveryReport(failed=1)
    guide.see("guide", 200)
    assert guide.deliver() == DeliveryReport(discarded=1, waiting=1)


def test_mails_about_one_link_keep_their_order(guide: Office) -> None:
    guide.see("guide", 404)
    guide.provider.answers = [refusal(DeliveryFailure.NOT_ACCEPTED)]
    guide.deliver()
    guide.see("guide", 200)
    assert due_notices(guide.store, now=guide.clock.now()) == []
    assert guide.deliver() == DeliveryReport(waiting=2)
    guide.clock.advance(timedelta(minutes=1))
    assert guide.deliver() == DeliveryReport(sent=2)
    assert guide.provider.told == ["guide:1", "guide:2"]


def test_a_break_that_could_not_be_sent_before_its_muted_recovery_misleads_nobody(guide: Office) -> None:
    guide.see("guide", 404)
    guide.provider.answers = [refusal(DeliveryFailure.NOT_ACCEPTED)]
    guide.deliver()
    guide.see("guide", 200)
    quiet(guide)
    guide.deliver()  # mutes the recovery; the break is not due yet
    guide.clock.advance(timedelta(seconds=30))
    speak(guide)
    guide.clock.advance(timedelta(minutes=1))
    assert guide.deliver() == DeliveryReport(muted=1)
    assert guide.notice("guide:1").last_error == OVERTAKEN
    assert guide.provider.told == []


def test_a_mail_in_doubt_is_not_repeated_under_a_mute(guide: Office) -> None:
    guide.see("guide", 404)
    guide.provider.answers = [refusal(DeliveryFailure.UNKNOWN)]
    guide.deliver()
    quiet(guide)
    guide.clock.advance(WAIT_FOR_WORD)
    assert due_notices(guide.store, now=guide.clock.now()) == []  # nobody is woken for it
    assert guide.deliver() == DeliveryReport(waiting=1)
    guide.clock.advance(7 * DAY)
    assert len(due_notices(guide.store, now=guide.clock.now())) == 1
    assert guide.deliver() == DeliveryReport(sent=1)
    assert guide.provider.told == ["guide:1", "guide:1"]


def test_a_host_is_muted_with_all_its_links_and_no_other(office: Office) -> None:
    office.watch(a="https://a.example.com/1", b="https://a.example.com/2", c="https://c.example.com/")
    quiet(office, "A.example.com")
    for link_id in "abc":
        office.see(link_id, 404)
    assert office.deliver() == DeliveryReport(sent=1, muted=2)
    office.see("a", 200)
    office.deliver()
    speak(office, "a.example.com")
    assert office.deliver() == DeliveryReport(sent=1)
    assert office.provider.told == ["c:1", "b:1"]


def test_a_link_under_two_mutes_waits_for_both(guide: Office) -> None:
    quiet(guide, days=2)
    quiet(guide, "docs.example.com", days=9)
    guide.see("guide", 404)
    guide.deliver()
    guide.clock.advance(3 * DAY)
    assert guide.deliver() == DeliveryReport()
    guide.clock.advance(7 * DAY)
    assert guide.deliver() == DeliveryReport(sent=1)


def test_a_mute_that_is_prolonged_keeps_what_it_owes(guide: Office) -> None:
    quiet(guide, days=1)
    guide.see("guide", 404)
    guide.deliver()
    guide.clock.advance(2 * DAY)
    quiet(guide, days=5)  # nobody looked in between
    assert guide.deliver() == DeliveryReport()
    [view] = list_mutes(guide.store)
    assert view.mute.since == guide.clock.now() - 2 * DAY
    guide.clock.advance(5 * DAY)
    assert guide.deliver() == DeliveryReport(sent=1)


def test_a_crash_while_a_mute_is_lifted_loses_nothing(guide: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(guide)
    guide.see("guide", 404)
    guide.deliver()
    guide.clock.advance(7 * DAY)
    with monkeypatch.context() as patched:
        patched.setattr(type(guide.store), "update_notice", lambda *_, **__: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            lift_mutes(guide.store, now=guide.clock.now(), damaged=Damage())
    assert guide.deliver() == DeliveryReport(sent=1)


def test_a_mute_that_ends_while_a_notice_is_being_muted_owes_it_no_longer(
    guide: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one who mutes has read the mute before it ended; the one who lifted it has seen no muted notice."""
    quiet(guide)
    guide.see("guide", 404)
    kind, muting = type(guide.store), type(guide.store).update_notice

    def ended_meanwhile(store: SqliteStore, *args: object, **kwargs: object) -> bool:
        monkeypatch.setattr(kind, "update_notice", muting)
        unmute(store, "guide", now=guide.clock.now())
        return muting(store, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "update_notice", ended_meanwhile)
    assert guide.deliver() == DeliveryReport(muted=1)
    assert guide.deliver() == DeliveryReport(sent=1)


def test_a_link_that_moved_has_nothing_left_to_tell(guide: Office) -> None:
    from linkwatch_pipeline.use_cases.register import update_link

    quiet(guide)
    guide.see("guide", 404)
    guide.deliver()
    update_link(guide.store, link_id="guide", url="https://docs.example.com/new", now=guide.clock.now())
    speak(guide)
    assert guide.deliver() == DeliveryReport()


def test_mutes_are_listed_with_what_they_cover(office: Office) -> None:
    office.watch(a="https://a.example.com/1", b="https://a.example.com/2", c="https://c.example.com/")
    office.see("a", 404)
    quiet(office, "a.example.com")
    quiet(office, "c")
    speak(office, "c")
    views = list_mutes(office.store)
    assert [(v.mute.target, v.links, v.broken, v.mute.is_active(office.clock.now())) for v in views] == [
        ("host:a.example.com", 2, 1, True),
        ("link:c", 1, 0, False),
    ]
    assert views[0].mute.muted_by == "ana"
    links = list(office.store.links())
    assert set(active_mutes(office.store, links, now=office.clock.now())) == {"a", "b"}


def test_what_is_muted_must_exist_and_be_meant_clearly(office: Office) -> None:
    office.watch(guide=URL)
    with pytest.raises(NotFound, match="no link 'nobody'"):
        quiet(office, "nobody")
    with pytest.raises(NotFound, match="link:nobody"):
        quiet(office, "link:nobody")
    with pytest.raises(NotFound, match="host:"):
        quiet(office, "host:bad host")
    office.watch(**{"docs.example.com": "https://other.example.com/"})
    with pytest.raises(InvalidInput, match=r"link:docs\.example\.com or host:docs\.example\.com"):
        quiet(office, "docs.example.com")
    quiet(office, "host:docs.example.com")
    quiet(office, "link:docs.example.com")
    with pytest.raises(InvalidInput, match="is a link and a host"):
        speak(office, "docs.example.com")
    speak(office, "link:docs.example.com")
    speak(office, "docs.example.com")
    with pytest.raises(NotFound, match="not muted"):
        speak(office, "docs.example.com")


@pytest.mark.parametrize(
    ("until", "reason", "by", "field"),
    [
        ("2030-01-01", "r", None, "until"),
        ("yesterday", "r", None, "until"),
        ("2026-10-05", " ", None, "reason"),
        ("2026-10-05", "a\nb", None, "reason"),
        ("2026-10-05", "r", "", "by"),
    ],
)
def test_a_mute_needs_a_reason_and_an_end(guide: Office, until: str, reason: str, by: str | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        mute(guide.store, "guide", until=until, reason=reason, by=by, now=guide.clock.now())
    assert refused.value.field == field
    assert list(guide.store.mutes()) == []


def test_an_acknowledgement_holds_until_the_link_recovers(guide: Office) -> None:
    guide.see("guide", 404)
    known = acknowledge(guide.store, "guide", reason="ticket 7", by="ana", now=guide.clock.now())
    assert known.acknowledged is not None
    assert (known.acknowledged.reason, known.acknowledged.by) == ("ticket 7", "ana")
    guide.see("guide", 200)
    recovered = guide.store.get_link("guide")
    assert recovered is not None
    assert recovered.acknowledged is None
    guide.see("guide", 404)
    again = guide.store.get_link("guide")
    assert again is not None
    assert again.acknowledged is None  # that was another break


def test_only_a_broken_link_is_acknowledged(guide: Office) -> None:
    with pytest.raises(ConflictingContent, match="is unknown"):
        acknowledge(guide.store, "guide", reason="r", by=None, now=guide.clock.now())
    with pytest.raises(NotFound):
        acknowledge(guide.store, "nobody", reason="r", by=None, now=guide.clock.now())


def test_an_acknowledged_break_and_its_recovery_are_told_as_ever(guide: Office) -> None:
    guide.see("guide", 404)
    acknowledge(guide.store, "guide", reason="r", by=None, now=guide.clock.now())
    guide.see("guide", 200)
    assert guide.deliver() == DeliveryReport(sent=2)


@pytest.mark.parametrize("look_before_its_end", [True, False])
def test_a_mute_that_ends_during_a_run_hides_nothing_of_it(guide: Office, look_before_its_end: bool) -> None:
    """The break is seen while the mute lasts; the run closes after its end."""
    until = (guide.clock.now() + timedelta(minutes=10)).isoformat()
    mute(guide.store, "guide", until=until, reason="r", by=None, now=guide.clock.now())
    run_id = guide.run({"guide": 404}, run=a_run(MONDAY, started_at=guide.clock.now()), close=False)
    if look_before_its_end:
        guide.deliver()
    guide.clock.advance(timedelta(minutes=10))
    guide.close(run_id)
    guide.deliver()
    assert guide.provider.told == ["guide:1"]
    assert guide.deliver() == DeliveryReport()


def test_a_mute_that_begins_between_a_run_and_its_delivery_holds(guide: Office) -> None:
    guide.run({"guide": 404})
    quiet(guide)
    assert guide.deliver() == DeliveryReport(muted=1)
    speak(guide)
    assert guide.deliver() == DeliveryReport(sent=1)
