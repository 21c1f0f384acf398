"""Which references are watched, and under which ids."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.handbook import (
    Aside,
    read_reference,
    refuse_private_name,
    scanned_link_id,
    shown_reference,
)
from linkwatch_pipeline.domain.links import check_link_id
from linkwatch_pipeline.domain.urls import RefusedUrl, Url, parse_url

BASE = "https://book.example.com/en/pages/a.md"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://a.example.com", "https://a.example.com/"),
        (" HTTPS://A.example.com:443/x y#frag\n", "https://a.example.com/x%20y"),
        ("https://a.example.com/x\n  ?y", "https://a.example.com/x%20%20?y"),
        ("//a.example.com/x", "https://a.example.com/x"),
        (
            "https://x.example.com/Doc.aspx?sourcedoc={0123abcd-0123-0123-0123-0123456789ab}",
            "https://x.example.com/Doc.aspx?sourcedoc={0123abcd-0123-0123-0123-0123456789ab}",
        ),
        ("b.md", "https://book.example.com/en/pages/b.md"),
        ("../c/#x", "https://book.example.com/en/c/"),
        ("/top", "https://book.example.com/top"),
        ("?q", "https://book.example.com/en/pages/a.md?q"),
    ],
)
def test_a_reference_is_read_as_a_browser_reads_it(text: str, url: str) -> None:
    assert str(read_reference(text, base=BASE)) == url


@pytest.mark.parametrize(
    ("text", "aside"),
    [
        ("mailto:a@example.com", Aside.MAIL),
        ("TEL:+1", Aside.PHONE),
        ("#top", Aside.ANCHOR),
        ("", Aside.ANCHOR),
        ("b.md", Aside.RELATIVE),
        ("javascript:x()", Aside.OTHER_SCHEME),
        ("ftp://a.example.com", Aside.OTHER_SCHEME),
    ],
)
def test_what_is_not_fetched_is_counted(text: str, aside: Aside) -> None:
    assert read_reference(text, base=None) is aside


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("https://a.example.com/{{ x }}", "template"),
        ("{% page 'x' %}", "template"),
        ("https://a.example.com/{id}", "template"),
        ("https://<host>/x", "template"),
        ("https://me:secret@a.example.com", "credentials"),
        ("https:/a.example.com", "not followed by '//'"),
        ("hhttps://a.example.com", "the scheme 'hhttps' is not http or https"),
        ("http://2130706433/", "IPv4"),
        ("https://a.example.com/" + "x" * 3000, "characters"),
    ],
)
def test_what_cannot_be_watched_says_why(text: str, problem: str) -> None:
    with pytest.raises(RefusedUrl, match=problem):
        read_reference(text, base=BASE)


@given(st.text(max_size=60))
def test_any_reference_is_read_or_refused(text: str) -> None:
    with suppress(RefusedUrl):
        assert isinstance(read_reference(text, base=BASE), Url | Aside)


@pytest.mark.parametrize(
    "host", ["localhost", "app.localhost", "wiki", "wiki.internal", "printer.local", "x.home.arpa"]
)
def test_private_names_are_refused(host: str) -> None:
    with pytest.raises(RefusedUrl, match="public Internet"):
        refuse_private_name(parse_url(f"http://{host}/x"))


@pytest.mark.parametrize("host", ["a.example.com", "localhost.example.com", "127.0.0.1", "[::1]", "notlocal.example"])
def test_other_names_and_all_literals_pass(host: str) -> None:
    refuse_private_name(parse_url(f"http://{host}/x"))


def test_a_password_is_never_shown() -> None:
    assert shown_reference("https://me:secret@a.example.com/@x") == "https://\u2026@a.example.com/@x"
    assert len(shown_reference("https://a.example.com/" + "x" * 3000)) == 201


@pytest.mark.parametrize(
    ("url", "link_id"),
    [
        (
            "https://docs.example.com/guide/Getting%20started?x=1",
            "docs-example-com-guide-getting-20started-x-1-2ed39286",
        ),
        ("https://docs.example.com/", "docs-example-com-dc3d488a"),
        ("https://xn--bcher-kva.example/", "xn-bcher-kva-example-7971a8be"),
        ("http://[2606:4700::1111]/", "2606-4700-1111-5baed978"),
        (
            "https://a-very-long-host-name-of-more-than-thirty.example.com/" + "path/" * 20,
            "a-very-long-host-name-of-more-path-path-path-path-path-path-path-path-5fe9966f",
        ),
    ],
)
def test_an_id_is_readable_and_never_changes(url: str, link_id: str) -> None:
    """Other machines and later versions must make the same one, or a scan would register everything again."""
    assert scanned_link_id(url) == link_id


def test_an_id_never_holds_what_looks_like_a_secret() -> None:
    made = scanned_link_id("https://docs.example.com/guide?page=2&api_key=hunter2")
    assert made.startswith("docs-example-com-guide-page-2-api-key-redacted-")
    assert made != scanned_link_id("https://docs.example.com/guide?page=2&api_key=hunter3")


@given(st.from_regex(r"https://[a-z0-9-]{1,40}\.[a-z]{2,40}/[!-~]{0,200}", fullmatch=True))
def test_every_id_is_a_link_id_of_bounded_length(url: str) -> None:
    try:
        canonical = str(parse_url(url))
    except RefusedUrl:
        return
    made = scanned_link_id(canonical)
    assert check_link_id(made) == made
    assert made == scanned_link_id(canonical)
    host, _, digest = made.rpartition("-")
    assert len(digest) == 8
    assert len(host) <= 71
