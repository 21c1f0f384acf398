"""Links in HTML. Source: WHATWG HTML 13.2.5 (tokenization) as far as tags, attributes and comments need it.

Only tags are looked at, in one pass that never goes back, so neither nesting nor unclosed constructs can cost more than
the text is long. No tree is built: which element encloses a link changes nothing but `<base>`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.entities import html5
from urllib.parse import urljoin

from linkwatch_pipeline.adapters.handbook.lines import LineCounter
from linkwatch_pipeline.adapters.handbook.templates import replace_templates
from linkwatch_pipeline.domain.handbook import FoundLink

_MARKUP = re.compile(r"<(?:(!--)|(/?)([A-Za-z][^\s/>]*+)|[!?/])")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(r"[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)(\s*+=\s*+)?)")
_UNQUOTED = re.compile(r"[^\s>]*+")
_RAW_TEXT = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
_REFERENCE = re.compile(r"&(#[0-9]{1,7};?|#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]*;?)")
_CANDIDATE = re.compile(r"[\s,]*+(\S++)")
_REFRESH = re.compile(r"\s*+[0-9.]*+\s*+[;,]\s*+(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)
_JSX_TEXT = re.compile(r"""\{\s*+(["'`])([^"'`]*+)\1\s*+\}""")  # href={"https://example.com"}
_NOT_PAGES = ("preconnect", "dns-prefetch")  # they name hosts to talk to
# `to` is where the link components of Docusaurus, Gatsby and Vue lead.
_ROUTED = ("link", "navlink", "router-link", "routerlink")
# href and src mean a link on any element: components of documentation tools use them too.
_ADDRESSES = {"object": "data", "video": "poster"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A start tag: attribute name -> (value, offset of the value in the text)."""

    name: str
    attributes: dict[str, tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference and its offset in the text."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlLinks:
    """What HTML refers to. `base` is the first `<base href>`; `comment_open` is whether the text ends in a comment."""

    references: tuple[Reference, ...]
    base: str | None
    comment_open: bool


def html_file_links(text: str) -> list[FoundLink]:
    """All links of an HTML file, resolved against its `<base>`."""
    marked = replace_templates(text)
    links = links_in_html(marked.text)
    base = marked.restore(links.base) if links.base is not None else None
    counter = LineCounter(marked.text)
    found: list[FoundLink] = []
    for reference in links.references:
        line = counter.line(reference.offset)
        urls = marked.urls_in_marks(reference.text)
        for written in urls or [marked.restore(reference.text)]:
            found.append(FoundLink(text=_based(written, base), line=line))
    return found


def links_in_html(text: str) -> HtmlLinks:
    """Every reference in a piece of HTML, in order."""
    scanner = _Scanner(text)
    references: list[Reference] = []
    base: str | None = None
    for tag in scanner.tags():
        if tag.name == "base":
            base = base if base is not None else tag.attributes.get("href", (None, 0))[0]
            continue
        references.extend(_references(tag))
    return HtmlLinks(references=tuple(references), base=base, comment_open=scanner.comment_open)


def _based(reference: str, base: str | None) -> str:
    # A reference to the page itself stays one; urljoin would turn it into a link to the base.
    if base is None or not reference or reference.startswith("#"):
        return reference
    try:
        return urljoin(base, reference)
    except ValueError:  # an unreadable address stays as it is written, and is refused with a reason later
        return reference


def _references(tag: Tag) -> Iterator[Reference]:
    def of(attribute: str) -> Iterator[Reference]:
        if attribute in tag.attributes:
            value, offset = tag.attributes[attribute]
            jsx = _JSX_TEXT.fullmatch(value)
            yield Reference(text=jsx[2] if jsx is not None else value, offset=offset)

    if tag.name == "link" and set(_value(tag, "rel").lower().split()) & set(_NOT_PAGES):
        return
    found = [*of("href"), *of("xlink:href"), *of("src"), *_refresh(tag)]
    for attribute in ("srcset", "imagesrcset"):
        found.extend(_sources(tag, attribute))
    if tag.name in _ROUTED:
        found.extend(of("to"))
    if tag.name in _ADDRESSES:
        found.extend(of(_ADDRESSES[tag.name]))
    yield from sorted(found, key=lambda reference: reference.offset)


def _sources(tag: Tag, attribute: str) -> Iterator[Reference]:
    """The URLs of a `srcset`: each ends at a space or, at its end, a comma; a description follows up to a comma."""
    value, offset = tag.attributes.get(attribute, ("", 0))
    position = 0
    while (candidate := _CANDIDATE.match(value, position)) is not None:
        url = candidate[1].rstrip(",")
        if url:
            yield Reference(text=url, offset=offset)
        comma = value.find(",", candidate.end()) if not candidate[1].endswith(",") else candidate.end()
        if comma < 0:
            return
        position = comma


def _refresh(tag: Tag) -> Iterator[Reference]:
    if tag.name == "meta" and _value(tag, "http-equiv").strip().lower() == "refresh":
        content, offset = tag.attributes.get("content", ("", 0))
        target = _REFRESH.match(content)
        if target is not None:
            yield Reference(text=target[1], offset=offset)


def _value(tag: Tag, attribute: str) -> str:
    return tag.attributes.get(attribute, ("", 0))[0]


class _Scanner:
    """Goes through a text once. `comment_open` is known when all tags were taken."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.comment_open = False

    def tags(self) -> Iterator[Tag]:
        position = 0
        while (markup := _MARKUP.search(self._text, position)) is not None:
            if markup[1]:
                end = _COMMENT_END.search(self._text, markup.start() + 2)
                self.comment_open = end is None
                position = end.end() if end is not None else len(self._text)
            elif not markup[3]:
                position = self._after(">", markup.end())
            else:
                tag, position = self._tag(markup[3].lower(), markup.end())
                if tag is None:
                    return
                if not markup[2]:
                    yield tag
                    if tag.name in _RAW_TEXT:
                        position = self._end_of_raw_text(tag.name, position)

    def _tag(self, name: str, position: int) -> tuple[Tag | None, int]:
        """The tag up to its `>`; None if the text ends before it."""
        attributes: dict[str, tuple[str, int]] = {}
        while (part := _ATTRIBUTE.match(self._text, position)) is not None:
            position = part.end()
            if part[1]:
                return Tag(name=name, attributes=attributes), position
            value, start = "", position
            if part[3]:
                read = self._attribute_value(position)
                if read is None:
                    return None, len(self._text)
                value, start, position = read
            attributes.setdefault(part[2].lower(), (_decoded(value), start))
        return None, len(self._text)

    def _attribute_value(self, position: int) -> tuple[str, int, int] | None:
        """(value, where it begins, what follows); None if its quote is never closed."""
        quote = self._text[position : position + 1]
        if quote in ('"', "'") and quote:
            end = self._text.find(quote, position + 1)
            return (self._text[position + 1 : end], position + 1, end + 1) if end >= 0 else None
        unquoted = _UNQUOTED.match(self._text, position)
        end = unquoted.end() if unquoted is not None else position
        return self._text[position:end], position, end

    def _end_of_raw_text(self, name: str, position: int) -> int:
        end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._text, position)
        return end.start() if end is not None else len(self._text)

    def _after(self, character: str, position: int) -> int:
        found = self._text.find(character, position)
        return found + 1 if found >= 0 else len(self._text)


def _decoded(value: str) -> str:
    """Source: WHATWG 13.2.5.73: in an attribute, `&copy=2` is no copyright sign."""

    def decode(reference: re.Match[str]) -> str:
        name = reference[1]
        if name.startswith("#") or name.endswith(";"):
            return html.unescape(reference[0])
        follows = value[reference.end() : reference.end() + 1]
        return html5[name] if name in html5 and follows != "=" else reference[0]

    return _REFERENCE.sub(decode, value)
