"""URLs that stand in running text. Source: GFM 6.9 (extended autolinks) for where they begin, end and are trimmed.

Where GFM and a careful reader differ, the reader decides: quotes, CJK punctuation and an unmatched `]` end a URL.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

BEGINNING = r"(?<![A-Za-z0-9])(?i:https?://)|(?<![A-Za-z0-9._~/@-])(?i:www\.)(?=[\w-]+\.[\w-])"

_BEGINNING = re.compile(BEGINNING)
# Quotation marks, and the punctuation of Chinese and Japanese: their own marks and the full-width forms of !(),:;?
_QUOTES = r"\"`\u201c-\u201e\u00ab\u00bb"
_CJK_PUNCTUATION = r"\u3001-\u3003\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_END = re.compile(rf"[\s<>\x00-\x1f{_QUOTES}{_CJK_PUNCTUATION}]")
_ATTRIBUTE_LIST = re.compile(r"\{[:.#]")  # kramdown and Pandoc: https://example.com{:target="_blank"}
_LINK_BEHIND = re.compile(r"\[(?:\^|[^\[\]]{0,200}\]\()")  # https://example.com[^1], https://example.com[x](...)
_PLACEHOLDER = re.compile(r"<([A-Za-z][A-Za-z0-9_ .-]*)>")
_ENTITY = re.compile(r"&[A-Za-z0-9]+;\Z")
_DECODED_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_TRAILING = frozenset("?!.,:*_~'\"|\\;\u2018\u2019\u2026")
_CLOSING = {")": "(", "]": "[", "}": "{"}
# A `<word>` behind a URL is a tag if HTML knows it, else a blank for the reader to fill in.
_HTML_NAME = re.compile(
    r"a|abbr|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button|canvas|caption|"
    r"center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|div|dl|dt|em|embed|fieldset|"
    r"figcaption|figure|font|footer|form|h1|h2|h3|h4|h5|h6|head|header|hr|html|i|iframe|img|input|ins|kbd|"
    r"label|legend|li|link|main|map|mark|menu|meta|meter|nav|noscript|object|ol|optgroup|option|output|p|param|"
    r"picture|pre|progress|q|rp|rt|ruby|s|samp|script|section|select|small|source|span|strike|strong|style|sub|"
    r"summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|"
    r"wbr",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BareUrl:
    """A URL in text from `start` to `end`. `url` has its entities decoded; one without a scheme is given `http://`."""

    url: str
    start: int
    end: int


def find_bare_urls(text: str) -> Iterator[BareUrl]:
    """All of a text, in order."""
    position = 0
    while (beginning := _BEGINNING.search(text, position)) is not None:
        found = bare_url_at(text, beginning.start(), len(text))
        if found is not None:
            yield found
        position = found.end if found is not None else beginning.end()


def bare_url_at(text: str, start: int, limit: int) -> BareUrl | None:
    """The URL that begins exactly at `start`, None if none does."""
    beginning = _BEGINNING.match(text, start, limit)
    if beginning is None:
        return None
    end = _end_of_run(text, beginning.end(), limit)
    attributes = _ATTRIBUTE_LIST.search(text, beginning.end(), end)
    end = attributes.start() if attributes is not None else end
    end = _link_behind(text, beginning.end(), end, limit)
    end = _trimmed(text, start, _unmatched_bracket(text, start, end))
    shown = _decoded(text[start:end])
    if not re.match(r"[^\W_]|[\[<{$\ufdd0]", text[beginning.end() : end]):
        return None
    return BareUrl(url=shown if "://" in beginning[0] else f"http://{shown}", start=start, end=end)


def decode_entities(text: str) -> str:
    """HTML character references that end in a semicolon, as Markdown takes them."""
    return _DECODED_ENTITY.sub(lambda entity: html.unescape(entity[0]), text)


def _end_of_run(text: str, start: int, limit: int) -> int:
    position = start
    while True:
        stop = _END.search(text, position, limit)
        if stop is None:
            return limit
        blank = _PLACEHOLDER.match(text, stop.start(), limit)
        if blank is None or _HTML_NAME.fullmatch(blank[1]) is not None:
            return stop.start()
        position = blank.end()


def _link_behind(text: str, start: int, end: int, limit: int) -> int:
    """Where a footnote's mark or a Markdown link begins that no space parts from the URL; `end` if none does."""
    for bracket in re.finditer(r"\[", text[start:end]):
        if _LINK_BEHIND.match(text, start + bracket.start(), limit) is not None:
            return start + bracket.start()
    return end


def _unmatched_bracket(text: str, start: int, end: int) -> int:
    depth = 0
    for bracket in re.finditer(r"[\[\]]", text[start:end]):
        depth += 1 if bracket[0] == "[" else -1
        if depth < 0:
            return start + bracket.start()
    return end


def _trimmed(text: str, start: int, end: int) -> int:
    surplus = {closing: text.count(closing, start, end) - text.count(c, start, end) for closing, c in _CLOSING.items()}
    while end > start:
        last = text[end - 1]
        if last in _CLOSING and surplus[last] > 0:
            surplus[last] -= 1
            end -= 1
        elif last == ";":
            entity = _ENTITY.search(text, max(start, end - 34), end)
            end = entity.start() if entity is not None else end - 1
        elif last in _TRAILING:
            end -= 1
        else:
            break
    return end


def _decoded(text: str) -> str:
    decoded = decode_entities(text)
    if decoded == text:
        return text
    stop = re.search(r"[\s\"]", decoded)  # &nbsp; or &quot; ends it as the character itself would
    decoded = decoded[: stop.start()] if stop is not None else decoded
    return decoded[: _trimmed(decoded, 0, len(decoded))]
