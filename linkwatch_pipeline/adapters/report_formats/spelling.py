"""Finds a URL in a line of a handbook however it is spelled there, and says how another is written in its place.

Only whole URLs are found: never the beginning of a longer one, and none inside of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape, unescape
from pathlib import PurePosixPath

from linkwatch_pipeline.domain.urls import RefusedUrl, canonical_url

# What begins like a URL, up to a sign that no URL holds in any kind of file; a canonical one has 2,048 signs at most.
_RUN = re.compile(r"(?<![A-Za-z0-9+.:/-])(?:https?:)?//[^\s<>\"`{}|\\^\x00-\x1f\x7f]{0,4096}", re.IGNORECASE)
_MOST_ENDS = 12  # that one run of signs is tried with: a line of brackets alone must not take minutes
_TRAILING = re.compile(r"[.,;:!?'*_~)\]]+$")
_CLOSING = {")": "(", "]": "["}
_MARKUP = (".html", ".htm", ".xhtml", ".xml")
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mdx")
_TABLES = (".csv", ".tsv")
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]*")  # printable ASCII without what ends a URL somewhere


class CannotStandHere(ValueError):
    """The new URL cannot be written where the old one stands; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """Where a URL stands in a line, as characters, with the fragment that was written behind it (`#` included)."""

    start: int
    end: int
    text: str
    fragment: str
    before: str


def find_url(line: str, url: str, *, file: str) -> Iterator[Spelled]:
    """Each place in the line where `url` (canonical) is written, from left to right."""
    position = 0
    while run := _RUN.search(line, position):
        # The shortest first: what follows stays as it is, and is looked at too.
        before = line[: run.start()][-1:]
        ends = sorted(set(_ends(run[0], before, file)))[:_MOST_ENDS]
        length = next((end for end in ends if _reads_as(run[0][:end], file) == url), None)
        if length is not None:
            text = run[0][:length]
            _, mark, fragment = text.partition("#") if not _has_entities(file) else _split_fragment(text)
            yield Spelled(
                start=run.start(),
                end=run.start() + length,
                text=text,
                fragment=mark + fragment,
                before=before,
            )
        position = run.start() + (length or ends[0])


def respell(target: str, old: Spelled, *, file: str) -> str:
    """The new URL as it is written in place of the old one, whose fragment goes with it. Raises CannotStandHere."""
    suffix = _suffix(file)
    if not _PLAIN.fullmatch(target):
        raise CannotStandHere("the new address holds a sign that would end it there")
    if suffix in _TABLES and re.search(r"[,;]", target):
        raise CannotStandHere("the new address holds a sign that ends a cell")
    if suffix not in _MARKUP and (_unbalanced(target) or (old.before == "'" and "'" in target)):
        raise CannotStandHere("the new address holds a bracket or quote that would end it there")
    if suffix == ".rst" and target.endswith("_"):
        raise CannotStandHere("the new address ends with a sign that means something there")
    fragment = "" if "#" in target else old.fragment
    if suffix in _MARKUP:
        return escape(target) + fragment
    if suffix in _MARKDOWN and ("&amp;" in old.text or unescape(target) != target):
        return target.replace("&", "&amp;") + fragment
    return target + fragment


def _ends(run: str, before: str, file: str) -> Iterator[int]:
    """Where a URL at the beginning of a run of its characters may end.

    An apostrophe is a sign of the URL unless one stands before it; so is a comma in a cell of CSV with quotes.
    """
    yield len(run)
    trailing = _TRAILING.search(run)
    if trailing is not None:
        yield from range(trailing.start(), len(run))
    depth = dict.fromkeys(_CLOSING.values(), 0)
    for place, c in enumerate(run):
        if c in depth:
            depth[c] += 1
        elif c in _CLOSING:
            depth[_CLOSING[c]] -= 1
            if depth[_CLOSING[c]] == -1:
                yield place
        elif (c == "'" and before == "'") or (c in ",;" and before != '"' and _suffix(file) in _TABLES):
            yield place


def _reads_as(text: str, file: str) -> str | None:
    """The canonical URL that a reader takes the text for."""
    text = unescape(text) if _has_entities(file) else text
    try:
        return canonical_url(f"https:{text}" if text.startswith("//") else text)
    except RefusedUrl:
        return None


def _split_fragment(text: str) -> tuple[str, str, str]:
    """At the `#` that begins the fragment; one that belongs to an entity such as `&#38;` does not."""
    mark = re.search(r"(?<!&)#", text)
    return (text[: mark.start()], "#", text[mark.end() :]) if mark is not None else (text, "", "")


def _unbalanced(target: str) -> bool:
    depth = 0
    for c in target:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if depth < 0:
            return True
    return depth != 0 or "[" in target or "]" in target


def _has_entities(file: str) -> bool:
    return _suffix(file) in (*_MARKUP, *_MARKDOWN)


def _suffix(file: str) -> str:
    return PurePosixPath(file).suffix.lower()
