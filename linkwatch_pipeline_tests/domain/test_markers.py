"""The expected text in pages of every charset that pages are written in."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.markers import marker_in_body

TEXT = "<p>Übersicht für Gäste</p>"
MARKER = "für Gäste"
KANJI = "<p>障害対応の手順</p>"


@pytest.mark.parametrize(
    "charset",
    ["utf-8", "UTF8", "utf-8-sig", "utf-16", "utf-16le", "utf-16-be", "utf-32", "UTF-32BE", "iso-8859-1", "latin1",
     "windows-1252", "iso-8859-15", "cp437", "mac-roman", "utf-7"],
)  # fmt: skip
def test_the_marker_is_found_in_the_declared_charset(charset: str) -> None:
    body = TEXT.encode(charset)
    assert marker_in_body(MARKER, body, charset)
    assert not marker_in_body("für Hunde", body, charset)


@pytest.mark.parametrize("charset", ["shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "utf-16"])
def test_charsets_with_several_bytes_a_character_or_with_shifts_are_read(charset: str) -> None:
    assert marker_in_body("対応", KANJI.encode(charset), charset)


@pytest.mark.parametrize(
    ("mark", "charset"),
    [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF32_LE, "utf-32-le"),
     (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF8, "utf-8")],
)  # fmt: skip
@pytest.mark.parametrize("declared", [None, "iso-8859-1", "utf-16"])
def test_a_byte_order_mark_wins_over_the_declaration(mark: bytes, charset: str, declared: str | None) -> None:
    assert marker_in_body(MARKER, mark + TEXT.encode(charset), declared)


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_may_have_either_byte_order(order: str) -> None:
    assert marker_in_body(MARKER, TEXT.encode(order), "utf-16")


@pytest.mark.parametrize(
    "head",
    ['<meta charset="windows-1252">', "<META charset=windows-1252>", '<?xml version="1.0" encoding="windows-1252"?>',
     '<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">'],
)  # fmt: skip
def test_a_page_may_declare_its_charset_itself(head: str) -> None:
    assert marker_in_body(MARKER, (head + TEXT).encode("cp1252"), None)


def test_the_header_wins_over_the_page() -> None:
    body = ('<meta charset="utf-16">' + TEXT).encode("cp1252")
    assert marker_in_body(MARKER, body, "windows-1252")
    assert not marker_in_body(MARKER, body, None)


@pytest.mark.parametrize(
    "charset",
    [None, "", "klingon-8", "hex", "base64", "rot13", "zlib", "idna", "punycode", "unicode_escape", "undefined",
     "raw_unicode_escape", "a\x00b", "../../etc/passwd", "x" * 5000, "mbcs"],
)  # fmt: skip
def test_an_odd_charset_is_no_charset(charset: str | None) -> None:
    assert marker_in_body("Gäste", "Gäste".encode(), charset)
    assert not marker_in_body("Gäste", b"\\xe4 G=C3=A4ste Gste-5ua" * 100, charset)


def test_a_character_that_was_cut_hides_nothing() -> None:
    assert marker_in_body("対応", KANJI.encode("utf-16-le")[:-1], "utf-16le")


@given(st.binary(max_size=300), st.sampled_from([None, "utf-16", "utf-7", "iso-2022-jp", "hz", "gb18030", "big5"]))
def test_no_page_breaks_it(body: bytes, charset: str | None) -> None:
    assert marker_in_body("no page holds this marker", body, charset) is False
