"""A page's text, and whether it holds what it must contain, whatever charset it is written in (SPEC 4)."""

from __future__ import annotations

import codecs
import re

# A byte order mark wins over every declaration, as in browsers. UTF-32's begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Either byte order may be meant where the name leaves it open and no mark stands there.
_WITHOUT_ORDER = {"utf-16": ("utf-16-le", "utf-16-be"), "utf-32": ("utf-32-le", "utf-32-be")}
# Python's own, no charsets of pages; decoding a hostile page with some of them takes minutes.
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "unicode-escape"})
_DECLARED_WITHIN = 1024
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)


def marker_in_body(marker: str, body: bytes, charset: str | None) -> bool:
    """Whether the expected text stands in the bytes read: as UTF-8, or in the page's own charset.

    Args: charset: as the answer's header declares it; None if it does not.
    """
    if marker.encode() in body:
        return True
    return any(marker in body.decode(name, errors="replace") for name in _charsets(body, charset))


def page_text(body: bytes, charset: str | None) -> str:
    """The bytes as text, in the page's own charset, else as UTF-8; what is wrong in it is replaced."""
    return body.decode(next(iter(_charsets(body, charset)), "utf-8"), errors="replace")


def _charsets(body: bytes, declared: str | None) -> tuple[str, ...]:
    """The charsets to read the page in: by its byte order mark, else by its header, else by what it says itself."""
    for mark, name in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return (name,)
    said = _DECLARED.search(body[:_DECLARED_WITHIN])
    name = declared or (said[1].decode("ascii") if said is not None else "")
    try:
        found = codecs.lookup(name)
        b" ".decode(name, errors="replace")  # refuses what turns bytes into bytes
    except (LookupError, ValueError):
        return ()
    return _WITHOUT_ORDER.get(found.name, (found.name,)) if found.name not in _NO_CHARSETS else ()
