"""What pages say of being no real pages: the words of error and parking pages, and none of a manual's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.page_hints import PageHint, page_hints

MANUAL = "<html><head><title>{title}</title></head><body><h1>{heading}</h1><p>{text}</p></body></html>"


def hints(page: str, *, content_type: str | None = "text/html") -> tuple[str, ...]:
    return page_hints(page.encode(), content_type=content_type, charset=None)


@pytest.mark.parametrize(
    "title",
    [
        "404", "404 Not Found", "Error 404", "404 | Example", "Page not found · GitHub",
        "Page Not Found - Example Docs",
        "Not Found", "HTTP 404", "Oops! That page can't be found.", "This page does not exist",
        "The page you requested could not be found",
        "This page is no longer available",
        "Sorry, this page isn\u2019t here: 404 page",
        "Seite nicht gefunden", "Page introuvable", "File has been removed | Example", "Document no longer exists",
    ],
)  # fmt: skip
def test_an_error_page_says_so_in_its_title_or_its_heading(title: str) -> None:
    assert hints(MANUAL.format(title=title, heading="Example", text="")) == (PageHint.NOT_FOUND,)
    in_heading = MANUAL.format(title="Example", heading=f"<span class='big'>{title}", text="")
    assert hints(in_heading) == (PageHint.NOT_FOUND,)
    assert hints(f"{title}\nand more", content_type="text/plain") == (PageHint.NOT_FOUND,)


@pytest.mark.parametrize(
    "title",
    [
        "How to handle 404 responses", "HTTP status codes", "Area code 404 guide", "Finding pages that were lost",
        "404 ways to write tests", "Guide", "What is found in this document",
        "Lost and found", "RFC 4040", "Removing a page",
    ],
)  # fmt: skip
def test_a_page_about_errors_is_no_error_page(title: str) -> None:
    assert hints(MANUAL.format(title=title, heading=title, text="It answers 404 Not Found. Page not found.")) == ()


@pytest.mark.parametrize(
    "text",
    ["Domain for sale", "This domain is parked", "Buy this domain today!", "This domain may be for sale",
     "The domain has expired."],
)  # fmt: skip
def test_a_parked_domain_says_so_anywhere(text: str) -> None:
    assert hints(MANUAL.format(title="example.com", heading="Welcome", text=text)) == (PageHint.FOR_SALE,)
    assert hints(text, content_type="text/plain") == (PageHint.FOR_SALE,)


def test_a_sign_in_page_and_an_empty_one_are_named() -> None:
    assert hints(MANUAL.format(title="Sign in - Google Accounts", heading="", text="")) == (PageHint.SIGN_IN,)
    assert hints(MANUAL.format(title="Log in", heading="", text="")) == (PageHint.SIGN_IN,)
    assert hints(" \n") == (PageHint.EMPTY,)
    assert hints(MANUAL.format(title="Signing in users with tokens", heading="", text="Log in")) == ()


def test_only_pages_of_text_are_read_and_in_their_own_charset() -> None:
    assert hints("404 Not Found", content_type="application/pdf") == ()
    assert hints("<title>404</title>", content_type=None) == (PageHint.NOT_FOUND,)
    page = MANUAL.format(title="Page Not Found", heading="", text="").encode("utf-16")
    assert page_hints(page, content_type="text/html", charset="utf-16") == (PageHint.NOT_FOUND,)


@given(
    st.binary(max_size=2000), st.sampled_from(["text/html", "text/plain"]), st.sampled_from([None, "utf-16", "big5"])
)
def test_any_bytes_are_read(body: bytes, content_type: str, charset: str | None) -> None:
    assert set(page_hints(body, content_type=content_type, charset=charset)) <= {hint.value for hint in PageHint}


@pytest.mark.parametrize("piece", ["<title", "<h1 ", "<h1><a ", "page ", "not ", "domain ", "<h1> <b> "])
def test_a_hostile_page_of_64_kib_is_read_at_once(piece: str) -> None:
    """Patterns that try everything would take minutes; the suite's time limit says so."""
    hints((piece * 70_000)[: 64 * 1024])
