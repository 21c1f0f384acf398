"""What owners read, and what hostile text can do to it: nothing."""

from __future__ import annotations

import email
import email.policy
import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.notify.message import to_message
from linkwatch_pipeline.domain.links import LinkState, Place
from linkwatch_pipeline.domain.notices import MOST_PLACES_TOLD, Notice
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline.use_cases.mails import compose
from linkwatch_pipeline_tests.builders import MONDAY, after
from linkwatch_pipeline_tests.mail_builders import a_notice, a_recovery

HOSTILE = '"><script>alert(1)</script><img src=x>\r\nState now: reachable\u202e\u2028$owner ${rows}'


class Page(HTMLParser):
    """The tags, attributes and visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, list[str | None]] = {}
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value)

    def handle_data(self, data: str) -> None:
        self.text += data


def composed(notice: Notice, **changes: Any) -> Mail:
    return compose(notice, "docs-team@example.com", sender="linkwatch@example.com", now=MONDAY, **changes)


@pytest.mark.parametrize(
    ("notice", "subject"),
    [(a_notice(), "[linkwatch] Broken: guide"), (a_recovery(), "[linkwatch] Reachable again: guide")],
)
def test_the_subject_says_what_was_seen_of_which_link(notice: Notice, subject: str) -> None:
    assert composed(notice).subject == subject


@pytest.mark.parametrize("body", ["text", "html"])
@pytest.mark.parametrize(
    ("notice", "facts"),
    [
        (a_notice(), ["broken (was reachable)", "404 Not Found", "guide:2"]),
        (a_notice(observed_status=410), ["410 Gone"]),
        (a_notice(from_state=LinkState.UNKNOWN, since=None), ["broken (was unknown)"]),
        (
            a_recovery(),
            [
                "reachable (was broken)",
                "200 OK",
                "guide:3",
                "2026-09-21 09:00:00 UTC (7 days, as far as was seen)",
                "It had been seen broken since 2026-09-21 09:00:00 UTC, for 7 days.",
            ],
        ),
        (a_recovery(observed_status=204), ["204"]),
        (a_notice(observed_status=None, observed_reason=Reason.TIMEOUT), ["none (timeout)"]),
    ],
)
def test_a_mail_has_every_field_in_both_forms(notice: Notice, facts: list[str], body: str) -> None:
    mail = composed(notice)
    text = mail.text if body == "text" else Page(mail.html).text
    always = [
        "guide",
        "https://docs.example.com/guide",
        "handbook/setup.md, line 12",
        "docs-team",
        "2026-09-28 09:00:00 UTC",
    ]
    for fact in [*always, *facts]:
        assert fact in text


def test_a_mail_claims_no_more_than_one_look_can_prove() -> None:
    assert "does not prove that the page is gone for good" in composed(a_notice()).text
    assert "does not prove that it still says what the handbook means" in composed(a_recovery()).text


def test_only_a_recovery_says_since_when_it_was_broken() -> None:
    assert "Broken since" not in composed(a_notice()).text
    assert "Broken since" not in composed(a_recovery(since=None)).text


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "less than a minute"),
        (timedelta(minutes=1, seconds=30), "1 minute"),
        (timedelta(hours=2, minutes=5), "2 hours 5 minutes"),
        (timedelta(days=1, hours=1, minutes=9), "1 day 1 hour"),
        (timedelta(days=21), "21 days"),
        (timedelta(days=-1), "less than a minute"),
    ],
)
def test_the_length_of_an_outage_is_said_in_words(length: timedelta, words: str) -> None:
    assert f"({words}, as far" in composed(a_recovery(since=MONDAY - length)).text


def test_a_link_without_places_or_with_very_many_is_still_told() -> None:
    assert "no place recorded" in composed(a_notice(places=())).text
    many = tuple(Place(file=f"page-{n}.md", line=n) for n in range(1, 31))
    text = composed(a_notice(places=many)).text
    assert f"page-{MOST_PLACES_TOLD}.md, line {MOST_PLACES_TOLD}" in text
    assert "and 10 more" in text
    assert "page-30.md" not in text


def test_mails_of_one_link_make_one_thread() -> None:
    broken, recovered = composed(a_notice()), composed(a_recovery())
    assert broken.references == recovered.references == ("<guide.thread@linkwatch.invalid>",)
    assert broken.message_id == "<guide_3a2@linkwatch.invalid>"
    assert recovered.message_id == "<guide_3a3@linkwatch.invalid>"


def test_no_two_links_share_a_thread() -> None:
    ids = ["a.b", "a_b", "a-b", "a_2eb", "a.thread"]
    assert len({composed(a_notice(link_id=link_id)).references for link_id in ids}) == len(ids)


def test_the_mail_goes_from_the_sender_to_the_owner_and_the_others() -> None:
    mail = composed(a_notice(), copies=["a@example.com", "b@example.com"])
    assert (mail.sender, mail.recipient) == ("linkwatch@example.com", "docs-team@example.com")
    assert mail.copies == ("a@example.com", "b@example.com")
    assert mail.date == MONDAY


def test_a_possible_duplicate_says_so() -> None:
    assert "may have this mail already" not in composed(a_notice()).text
    again = composed(a_notice(), repeated=True)
    assert "may have this mail already" in again.text
    assert "may have this mail already" in again.html


@pytest.mark.parametrize("field", ["url", "owner", "place"])
@given(text=st.just(HOSTILE) | st.text(max_size=80))
@settings(max_examples=50, deadline=None)
def test_hostile_text_stays_text(field: str, text: str) -> None:
    changes: dict[str, Any] = {"places": (Place(file=text, line=1),)} if field == "place" else {field: text}
    plain, hostile = composed(a_notice()), composed(a_notice(**changes))
    assert hostile.subject == plain.subject
    assert len(hostile.text.splitlines()) == len(plain.text.splitlines())
    before, after_ = Page(plain.html), Page(hostile.html)
    assert after_.tags | {"a"} == before.tags
    assert {name for name in after_.attributes if name not in ("href", "rel")} <= set(before.attributes)
    assert hostile.html.encode()
    assert hostile.text.encode()


@given(url=st.just(HOSTILE) | st.text(max_size=60), team=st.text(max_size=40), file=st.text(max_size=60))
@settings(max_examples=50, deadline=None)
def test_hostile_text_adds_no_header_no_part_and_no_recipient(url: str, team: str, file: str) -> None:
    notice = a_notice(url=url, owner=team, places=(Place(file=file + "\r\nBcc: victim@example.org", line=1),))
    plain, hostile = (
        email.message_from_bytes(to_message(composed(each)).as_bytes(), policy=email.policy.default)
        for each in (a_notice(), notice)
    )
    named = ("Content-Type",)  # with a boundary of its own
    assert [(k, v) for k, v in hostile.items() if k not in named] == [
        (k, v) for k, v in plain.items() if k not in named
    ]
    assert [p.get_content_type() for p in hostile.walk()] == [p.get_content_type() for p in plain.walk()]


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "https://a.example/\u202ex", " http://a.example"]
)
def test_only_a_plain_page_address_becomes_a_link(url: str) -> None:
    page = Page(composed(a_notice(url=url)).html)
    assert "a" not in page.tags


def test_a_url_cannot_break_out_of_its_link() -> None:
    page = Page(composed(a_notice(url='https://a.example/" onclick="x()"><b>y</b>')).html)
    assert page.attributes["href"] == ['https://a.example/" onclick="x()"><b>y</b>']
    assert "onclick" not in page.attributes
    assert "b" not in page.tags


def test_the_page_fits_a_phone_and_loads_nothing() -> None:
    page = Page(composed(a_notice(observed_at=after(minutes=3))).html)
    assert "width=device-width, initial-scale=1" in page.attributes["content"]
    assert page.tags <= {"html", "head", "meta", "title", "body", "h1", "p", "dl", "dt", "dd", "a", "br"}
    assert page.attributes["href"] == ["https://docs.example.com/guide"]
    assert "src" not in page.attributes
    assert "style" not in page.tags
    assert not re.search(r"url\(|@import|expression", composed(a_notice()).html)


def test_the_page_is_readable_on_a_dark_screen() -> None:
    """A colour for text or page alone would be lost on one of the two."""
    page = Page(composed(a_notice()).html)
    assert "light dark" in page.attributes["content"]
    styles = " ".join(style or "" for style in page.attributes["style"])
    assert "color-scheme: light dark" in styles
    assert not re.search(r"(?<!-)\bcolor:|background", styles)


def test_the_page_is_sound_html() -> None:
    import html5lib

    for notice in (a_notice(), a_recovery(), a_notice(url=HOSTILE, owner=HOSTILE)):
        html5lib.HTMLParser(strict=True).parse(composed(notice).html)


def test_broken_and_recovered_differ_at_a_glance() -> None:
    assert "#d1242f" in composed(a_notice()).html
    assert "#2da44e" in composed(a_recovery()).html
