"""Template tags (Jekyll, Liquid, Nunjucks, Hugo, Jinja) in a text that is not template code otherwise.

A tag may hold spaces and line ends where Markdown and HTML allow none, so each becomes one mark without any. Line
numbers survive: a mark carries as many `SWALLOWED` characters as its tag had line ends. All three characters are
Unicode noncharacters, which `replace_templates` takes out of the text first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK, MARK_END, SWALLOWED = "\ufdd0", "\ufdd1", "\ufdd2"
_MAX_TAG_CHARACTERS = 4000
_MDX_COMMENT = "{/*"
_RESERVED = re.compile("[\ufdd0-\ufdd2]")
_OPENING = re.compile(r"\{[%{]|\{#(?=\s)|\{/\*")
_CLOSING = {"{%": "%}", "{{": "}}", "{#": "#}", _MDX_COMMENT: "*/}"}
_TAG_NAME = re.compile(r"\{%[-+~]?\s*(\w+)")
_MARK = re.compile(f"{MARK}([0-9]+){MARK_END}{SWALLOWED}*")
_QUOTED_URL = re.compile(r"""(["'])(https?://[^\s"'{}]+)\1""", re.IGNORECASE)
# A tag on a line of its own is gone when the page is built, and a reference definition may follow it directly.
_LINE_OF_TAGS_BEFORE_DEFINITION = re.compile(
    f"^[ ]{{0,3}}(?:{_MARK.pattern})+[ \t]*$(?=\n[ ]{{0,3}}\\[[^\\]\n]+\\]:)", re.MULTILINE
)
# What stands between these is not for readers, or is code.
_COMMENT_ENDS = {"comment": "endcomment", "highlight": "endhighlight"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A text whose template tags are marks."""

    text: str
    tags: tuple[str, ...]

    def restore(self, text: str) -> str:
        """A piece of the text with its tags as they were written."""
        return _MARK.sub(lambda mark: self.tags[int(mark[1])], text) if MARK in text else text

    def urls_in_marks(self, text: str) -> list[str]:
        """Whole URLs that stand quoted in the tags of a piece of the text: `{% link "https://example.com" %}`."""
        return [url[2] for mark in _MARK.finditer(text) for url in _QUOTED_URL.finditer(self.tags[int(mark[1])])]


def replace_templates(text: str) -> Marked:
    """Marks for tags, nothing for template comments. What does not end within its paragraph is no tag."""
    text = _RESERVED.sub("\ufffd", text)
    if _OPENING.search(text) is None:
        return Marked(text=text, tags=())
    pieces: list[str] = []
    tags: list[str] = []
    position, raw = 0, False
    for start, end in _tags(text):
        if start < position:
            continue  # inside a comment
        tag = text[start:end]
        name = _name(tag)
        pieces.append(text[position:start])
        position = end
        closing = _COMMENT_ENDS.get(name) if not raw else None
        comment_end = _end_of_comment(text, end, closing) if closing is not None else None
        if comment_end is not None or tag.startswith(("{#", _MDX_COMMENT)):
            position = comment_end if comment_end is not None else end
            pieces.append(SWALLOWED * text.count("\n", start, position))
            continue
        raw = name == "raw" or (raw and name != "endraw")
        pieces.append(f"{MARK}{len(tags)}{MARK_END}{SWALLOWED * tag.count(chr(10))}")
        tags.append(tag)
    pieces.append(text[position:])
    return Marked(text=_LINE_OF_TAGS_BEFORE_DEFINITION.sub(_swallowed_only, "".join(pieces)), tags=tuple(tags))


def _tags(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        start = opening.start()
        closing = _CLOSING[opening[0]]
        end = text.find(closing, opening.end(), start + _MAX_TAG_CHARACTERS)
        if end < 0 or ("\n\n" in text[start:end] and opening[0] != _MDX_COMMENT):
            position = opening.end()
            continue
        position = end + len(closing)
        found.append((start, position))
    return found


def _name(tag: str) -> str:
    name = _TAG_NAME.match(tag)
    return name[1] if name is not None else ""


def _end_of_comment(text: str, start: int, closing: str) -> int | None:
    end = re.compile(rf"\{{%[-+~]?\s*{closing}\s*[-+~]?%\}}").search(text, start)
    return end.end() if end is not None else None


def _swallowed_only(line: re.Match[str]) -> str:
    return "".join(c for c in line[0] if c == SWALLOWED)
