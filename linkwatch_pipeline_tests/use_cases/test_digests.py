"""Digests: one mail for an owner and a run, with the discipline of single mails for each notice in it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Owner, Place
from linkwatch_pipeline.domain.notices import CLAIM_FOR, Notice, NoticeStatus, digest_id, run_of_digest
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices, notices_of_mail
from linkwatch_pipeline.use_cases.digests import compose_digest
from linkwatch_pipeline.use_cases.mail_frame import BROKEN_MARK, RECOVERED_MARK
from linkwatch_pipeline.use_cases.send_mail import WAIT_FOR_WORD
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, a_run, after
from linkwatch_pipeline_tests.mail_builders import a_notice, a_recovery
from linkwatch_pipeline_tests.use_cases.office import SENDER, Killed, Office, Provider, refusal
from linkwatch_pipeline_tests.use_cases.test_mails import HOSTILE, Page

PAGES = {f"page-{n}": f"https://a.example.com/{n}" for n in range(4)}


@pytest.fixture
def office() -> Iterator[Office]:
    store = SqliteStore.open(Path(":memory:"))
    office = Office(store)
    office.employ(delivery=Delivery.DIGEST)
    office.watch(**PAGES)
    yield office
    store.close()


def broken(office: Office, *names: str, close: bool = True) -> None:
    office.run(dict.fromkeys(names or PAGES, 404), close=close)


def test_an_owner_gets_one_mail_for_a_run(office: Office) -> None:
    broken(office)
    assert office.deliver() == DeliveryReport(sent=4)
    [mail] = office.provider.accepted
    assert (mail.recipient, mail.transition_ids) == ("docs-team@example.com", tuple(f"{name}:1" for name in PAGES))
    assert run_of_digest(mail.transition_id) == RUN_ID
    assert {n.mail_id for n in office.store.notices()} == {mail.transition_id}
    assert {n.provider_id for n in office.store.notices()} == {"provider-1"}
    assert [n.transition_id for n in notices_of_mail(office.store, mail.transition_id)] == list(mail.transition_ids)
    assert office.deliver() == DeliveryReport()


def test_each_owner_and_each_run_has_its_own(office: Office) -> None:
    office.employ("web", delivery=Delivery.DIGEST)
    office.employ("sre")
    for name, owner in (("w1", "web"), ("w2", "web"), ("s1", "sre"), ("s2", "sre")):
        office.store.save_link(a_link(name, f"https://b.example.com/{name}", owner=owner), replaces=None)
    office.run(dict.fromkeys([*PAGES, "w1", "w2", "s1", "s2"], 404))
    office.clock.advance(timedelta(days=7))
    office.run(dict.fromkeys(PAGES, 200), run=a_run(after(days=7)))
    assert office.deliver() == DeliveryReport(sent=12)
    assert sorted(len(mail.transition_ids) for mail in office.provider.accepted) == [0, 0, 2, 4, 4]
    assert len({mail.message_id for mail in office.provider.accepted}) == 5


def test_a_check_by_hand_is_told_in_a_mail_of_its_own(office: Office) -> None:
    office.see("page-0", 404)
    office.see("page-1", 404)
    assert office.deliver() == DeliveryReport(sent=2)
    assert [mail.transition_ids for mail in office.provider.accepted] == [(), ()]
    [told] = notices_of_mail(office.store, "page-0:1")
    assert told.mail_id == "page-0:1"
    assert notices_of_mail(office.store, "nobody:1") == []


def test_what_a_run_sees_after_its_digest_makes_a_second_one(office: Office) -> None:
    broken(office, "page-0", close=False)
    assert office.deliver() == DeliveryReport(sent=1)
    broken(office, "page-1", "page-2")
    assert office.deliver() == DeliveryReport(sent=2)
    first, second = office.provider.accepted
    assert first.message_id != second.message_id
    assert second.transition_ids == ("page-1:1", "page-2:1")


def test_what_was_not_accepted_goes_again_as_the_same_mail(office: Office) -> None:
    broken(office, "page-0", "page-1", close=False)
    office.provider.answers = [refusal(DeliveryFailure.NOT_ACCEPTED)]
    assert office.deliver() == DeliveryReport(retried=2)
    broken(office, "page-2")
    assert office.deliver() == DeliveryReport(waiting=2, sent=1)
    office.clock.advance(timedelta(minutes=1))
    assert office.deliver() == DeliveryReport(sent=2)
    second, first = office.provider.accepted
    assert (second.transition_ids, first.transition_ids) == (("page-2:1",), ("page-0:1", "page-1:1"))


def test_what_was_tried_together_goes_together_again_whatever_was_chosen_or_seen_since(office: Office) -> None:
    broken(office, "page-0", "page-1", close=False)
    office.provider.answers = [refusal(DeliveryFailure.UNKNOWN)]
    assert office.deliver() == DeliveryReport(unknown=2)
    office.employ(delivery=Delivery.EACH)
    office.clock.advance(WAIT_FOR_WORD)
    broken(office, "page-2")
    assert office.deliver() == DeliveryReport(sent=3)
    first, again, single = office.provider.accepted
    assert (again.message_id, again.transition_ids) == (first.message_id, ("page-0:1", "page-1:1"))
    assert (single.transition_id, single.transition_ids) == ("page-2:1", ())


def test_late_notices_never_join_a_mail_that_may_be_in_the_mailbox(office: Office) -> None:
    broken(office, "page-0", close=False)
    office.provider.answers = [refusal(DeliveryFailure.UNKNOWN)]
    office.deliver()
    office.clock.advance(WAIT_FOR_WORD)
    broken(office, "page-1")
    assert office.deliver() == DeliveryReport(sent=2)
    assert [mail.transition_ids for mail in office.provider.accepted] == [("page-0:1",), ("page-0:1",), ("page-1:1",)]


def test_a_lost_answer_leaves_all_of_it_unknown_and_is_repeated_with_the_same_identity(office: Office) -> None:
    broken(office)
    office.provider.answers = [refusal(DeliveryFailure.UNKNOWN)]
    assert office.deliver() == DeliveryReport(unknown=4)
    office.clock.advance(WAIT_FOR_WORD)
    assert office.deliver() == DeliveryReport(sent=4)
    first, second = office.provider.accepted
    assert (first.message_id, first.transition_ids) == (second.message_id, second.transition_ids)
    assert "may have this mail already" not in first.text
    assert "may have this mail already" in second.text


def test_what_is_refused_for_good_is_parked_whole(office: Office) -> None:
    broken(office)
    office.provider.answers = [refusal(DeliveryFailure.PERMANENT)]
    assert office.deliver() == DeliveryReport(failed=4)
    assert office.deliver() == DeliveryReport(waiting=4)


def test_every_attempt_is_written_down_before_the_provider_is_called(office: Office) -> None:
    seen: list[NoticeStatus] = []
    office.provider.before_answering = lambda: seen.extend(office.statuses().values())
    broken(office)
    office.deliver()
    assert seen == [NoticeStatus.SENDING] * 4


def test_a_crash_while_sending_is_repeated_whole_as_a_possible_duplicate(office: Office) -> None:
    broken(office)
    office.provider.answers = [Killed()]
    with pytest.raises(Killed):
        office.deliver()
    assert office.deliver(claimant="sender-2") == DeliveryReport(waiting=4)
    office.clock.advance(CLAIM_FOR)
    assert office.deliver(claimant="sender-2") == DeliveryReport(sent=4)
    [mail] = office.provider.accepted
    assert "may have this mail already" in mail.text


def test_a_crash_among_the_claims_costs_only_time(office: Office) -> None:
    broken(office, close=True)
    office.deliver(limit=0)
    for name in ("page-0:1", "page-1:1"):
        assert office.store.claim_notice(name, by="dead", now=office.clock.now()) is not None
    assert office.deliver() == DeliveryReport(sent=2, waiting=2)
    office.clock.advance(CLAIM_FOR)
    assert office.deliver() == DeliveryReport(sent=2)
    assert sorted(office.provider.told) == [f"{name}:1" for name in PAGES]
    assert len({mail.message_id for mail in office.provider.accepted}) == 2


def test_a_notice_that_another_sender_took_over_is_left_out(office: Office) -> None:
    broken(office)
    office.deliver(limit=0)
    claim = type(office.store).claim_notice
    taken = {}

    def claim_then_lose_the_first(store: SqliteStore, transition_id: str, **how: object) -> object:
        taken[transition_id] = claim(store, transition_id, **how)  # type: ignore[arg-type]
        if transition_id == "page-3:1":
            claim(store, "page-0:1", by="other", now=office.clock.now() + CLAIM_FOR)
        return taken[transition_id]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(office.store), "claim_notice", claim_then_lose_the_first)
        assert office.deliver() == DeliveryReport(sent=3, waiting=1)
    [mail] = office.provider.accepted
    assert mail.transition_ids == ("page-1:1", "page-2:1", "page-3:1")
    assert mail.transition_id == digest_id("docs-team", RUN_ID, "page-1:1")  # page-0:1 may name another mail


def test_several_senders_at_once_tell_every_notice_in_one_mail(tmp_path: Path) -> None:
    file = tmp_path / "linkwatch.sqlite3"
    office = Office(SqliteStore.open(file))
    pages = {f"page-{n:02}": f"https://a.example.com/{n}" for n in range(30)}
    office.employ(delivery=Delivery.DIGEST)
    office.watch(**pages)
    office.run(dict.fromkeys(pages, 404))
    barrier, providers = threading.Barrier(4), [Provider() for _ in range(4)]

    def send(number: int) -> None:
        store = SqliteStore.open(file)
        barrier.wait(60)
        deliver_notices(store, providers[number], clock=office.clock, sender=SENDER, claimant=f"sender-{number}")
        store.close()

    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)
    mails = [mail for provider in providers for mail in provider.accepted]
    assert sorted(name for mail in mails for name in mail.transition_ids) == [f"{name}:1" for name in pages]
    assert len({mail.message_id for mail in mails}) == len(mails)
    assert {notice.attempts for notice in office.store.notices()} == {1}
    office.store.close()


def test_a_muted_link_is_left_out_of_the_digest(office: Office) -> None:
    from linkwatch_pipeline.use_cases.mute import mute

    mute(office.store, "page-1", until="2026-12-24", reason="r", by=None, now=office.clock.now())
    broken(office)
    assert office.deliver() == DeliveryReport(sent=3, muted=1)


def test_other_teams_that_use_one_of_the_urls_get_a_copy(office: Office) -> None:
    office.employ("web")
    office.store.save_link(a_link("shared", "https://a.example.com/x", also_used_by=("web",)), replaces=None)
    office.run({"page-0": 404, "shared": 404})
    office.deliver()
    assert office.provider.accepted[0].copies == ("web@example.com",)


# What it says


def digest(*notices: Notice) -> Mail:
    owner = Owner(team="docs-team", address="docs-team@example.com", delivery=Delivery.DIGEST)
    return compose_digest(
        notices,
        owner,
        mail_id=f"digest:{RUN_ID}:0a1b2c3d4e5f",
        sender=SENDER,
        now=MONDAY,
    )


def notice(number: int, host: str, *places: tuple[str, int]) -> Notice:
    spots = tuple(Place(file=file, line=line) for file, line in places)
    return a_notice(transition_id=f"l{number}:2", link_id=f"l{number}", url=f"https://{host}/{number}", places=spots)


def test_an_outage_of_one_host_is_one_line_that_unfolds() -> None:
    down = [notice(n, "down.example.com", ("b.md" if n % 3 else "a.md", n)) for n in range(42)]
    one = notice(99, "other.example.com", ("a.md", 7))
    mail = digest(one, *down, a_recovery(transition_id="back:3", link_id="back"))
    assert mail.subject == "[linkwatch] 43 broken, 1 reachable again: docs-team"
    lines = mail.text.splitlines()
    assert lines.count("down.example.com: 42 broken") == 1
    assert lines.index("down.example.com: 42 broken") < lines.index("other.example.com: 1 broken")
    assert lines.index("other.example.com: 1 broken") < lines.index("docs.example.com: 1 reachable again")
    assert lines.index("  b.md") < lines.index("  a.md")  # the file with more of them first
    assert mail.html.count("<details") == 1
    assert "<summary><strong>down.example.com</strong>: 42 broken</summary>" in mail.html
    for name in (f"l{n}:2" for n in (*range(42), 99)):
        assert f"({name})" in mail.text
        assert f"({name})" in mail.html


def test_a_line_says_where_what_and_when() -> None:
    mail = digest(notice(1, "a.example.com", ("a.md", 3), ("b.md", 9), ("c.md", 1)))
    assert (
        "    line 3: l1 broken (was reachable), 404 Not Found at 2026-09-28 09:00:00 UTC (l1:2), and 2 more places\n"
        "      https://a.example.com/1\n" in mail.text
    )
    back = digest(a_recovery(places=()))
    assert "guide reachable again (was broken), 200 OK at 2026-09-28 09:00:00 UTC, broken since 2026-09-21" in back.text
    assert "no place recorded" in back.text


HOSTILE_URL = "https://docs.example.com/'><script>alert(1)</script><img/src=x>"


def test_hostile_text_stays_text_in_both_parts() -> None:
    mail = digest(
        a_notice(url=HOSTILE_URL, places=(Place(file=HOSTILE, line=1),)),
        a_notice(transition_id="b:1", url="https://docs.example.com/b", places=()),
    )
    page = Page(mail.html)
    assert page.tags <= {
        *("html", "head", "meta", "title", "body", "h1", "p", "div", "details", "summary", "strong", "ul", "li", "br"),
        "a",
    }
    assert "script" not in page.tags
    assert page.attributes.get("href") == ["https://docs.example.com/b", HOSTILE_URL]
    assert "src" not in page.attributes
    assert "\u202e" not in mail.text + mail.html
    assert "\nState now: reachable" not in mail.text


def test_a_digest_is_cut_where_it_would_go_to_more_teams_than_a_provider_takes(office: Office) -> None:
    for number in range(3):
        teams = tuple(f"team-{number}-{n:02}" for n in range(20))
        for team in teams:
            office.employ(team)
        link = a_link(f"shared-{number}", f"https://a.example.com/shared/{number}", also_used_by=teams)
        office.store.save_link(link, replaces=None)
    office.run({f"shared-{number}": 404 for number in range(3)})
    assert office.deliver() == DeliveryReport(sent=3)
    assert [len(mail.copies) for mail in office.provider.accepted] == [40, 20]
    assert [len(mail.transition_ids) for mail in office.provider.accepted] == [2, 1]


def test_a_digest_is_readable_on_a_dark_screen() -> None:
    """A colour for text or page alone would be lost on one of the two."""
    page = Page(digest(a_notice(), a_recovery(transition_id="back:3", link_id="back")).html)
    assert "light dark" in page.attributes["content"]
    styles = " ".join(style or "" for style in page.attributes["style"])
    assert "color-scheme: light dark" in styles
    assert not re.search(r"(?<!-)\bcolor:|background", styles)


def test_a_digest_shows_at_a_glance_whether_anything_broke() -> None:
    back = a_recovery(transition_id="back:3", link_id="back")
    assert BROKEN_MARK in digest(a_notice(), back).html
    assert RECOVERED_MARK in digest(back).html
