"""markdown-it's rules, wrapped so that each link is noted with its place, which its tokens do not keep."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block
from markdown_it.rules_block.reference import reference as reference_rule
from markdown_it.rules_inline import StateInline, autolink, html_inline, image, link

from linkwatch_pipeline.adapters.handbook.bare_urls import BEGINNING, bare_url_at, decode_entities
from linkwatch_pipeline.adapters.handbook.html import links_in_html
from linkwatch_pipeline.adapters.handbook.templates import MARK, MARK_END

MAX_NESTING = 100  # lists and quotes in each other; each costs the parser stack

# To kramdown and MkDocs, what is in such an element is Markdown.
_MARKDOWN_INSIDE = re.compile(
    r"<[a-z][a-z0-9]*+(?:\s++(?!markdown[\s=>])[^\s\"'>=]++(?:=(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?+)*+"
    r"\s++markdown(?:=[\"']?(?:1|block|span)\b|[\s>])",
    re.IGNORECASE,
)
_CODE_TAG = re.compile(r"<(/?)(?:code|pre|kbd|samp|script|style|textarea)(?=[\s/>])", re.IGNORECASE)
_STOP = re.compile(rf"[\[\]!<\\`{MARK}]|{BEGINNING}")


@dataclass(slots=True)
class Notes:
    """What the wrapped rules noted about one inline text: (offset, reference), and template tags beside the links."""

    found: list[tuple[int, str]] = field(default_factory=list)
    tags: list[tuple[int, str]] = field(default_factory=list)
    code_depth: int = 0
    too_deep: bool = False


def _notes(state: StateInline) -> Notes:
    notes: Notes = state.env["notes"]
    return notes


def _text(state: StateInline, silent: bool) -> bool:
    """Everything up to what could be a link, in one step. Bare URLs are links outside of links and code."""
    stop = _STOP.search(state.src, state.pos, state.posMax)
    end = stop.start() if stop is not None else state.posMax
    if end > state.pos:
        state.pos = end
        return True
    if silent or state.linkLevel > 0:
        return False
    notes = _notes(state)
    if notes.code_depth > 0:
        return False
    found = bare_url_at(state.src, state.pos, state.posMax)
    if found is None:
        return False
    notes.found.append((state.pos, re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", found.url)))
    state.pos = found.end
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    """A template tag in the text; a whole URL in it is a link."""
    if state.src[state.pos] != MARK:
        return False
    end = state.src.index(MARK_END, state.pos) + 1
    if not silent and state.linkLevel == 0 and _notes(state).code_depth == 0:
        _notes(state).tags.append((state.pos, state.src[state.pos : end]))
    state.pos = end
    return True


def _link(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if state.src[start] != "[":
        return False
    if state.level >= MAX_NESTING - 1:
        _notes(state).too_deep = True
    if not link(state, silent):
        return False
    if not silent:
        opening = next(token for token in reversed(state.tokens) if token.type == "link_open")
        _notes(state).found.append((_address_offset(state, start, start), str(opening.attrs["href"])))
    return True


def _image(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if silent or state.src[start] != "!":
        return image(state, silent)
    notes = _notes(state)
    before = len(notes.found)
    if not image(state, False):
        return False
    del notes.found[before:]  # what the alternative text contains is no link
    notes.found.append((_address_offset(state, start, start + 1), str(state.tokens[-1].attrs["src"])))
    return True


def _address_offset(state: StateInline, start: int, bracket: int) -> int:
    """Where the address of the link just parsed is written, or its beginning if that is a reference."""
    label_end = state.md.helpers.parseLinkLabel(state, bracket, bracket == start)
    if state.pos <= label_end + 1 or state.src[label_end + 1] != "(":
        return start
    address = re.compile(r"\s*").match(state.src, label_end + 2)
    return address.end() if address is not None else start


def _autolink(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not autolink(state, silent):
        return False
    if not silent:
        address = decode_entities(state.src[start + 1 : state.pos - 1])
        mail = "@" in address and ":" not in address
        _notes(state).found.append((start, f"mailto:{address}" if mail else address))
    return True


def _html_inline(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not html_inline(state, silent):
        return False
    if not silent:
        notes, tag = _notes(state), state.src[start : state.pos]
        notes.found.extend((start + found.offset, found.text) for found in links_in_html(tag).references)
        code = _CODE_TAG.match(tag)
        if code is not None and not tag.endswith("/>"):
            notes.code_depth = max(0, notes.code_depth + (-1 if code[1] else 1))
    return True


def _reference(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Not a definition: a footnote that was not recognised as one, such as in a quote."""
    if state.src.startswith("[^", state.bMarks[start_line] + state.tShift[start_line]):
        return False
    return reference_rule(state, start_line, end_line, silent)


def _html_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    if _MARKDOWN_INSIDE.match(state.src, state.bMarks[start_line] + state.tShift[start_line], state.eMarks[start_line]):
        return False
    return html_block(state, start_line, end_line, silent)


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING, "linkify": True}).enable("table")
    # Addresses stay byte for byte, and what is not fetched is counted, so nothing is changed or refused here.
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.core.ruler.disable(["inline", "text_join"])  # `markdown` parses the inline texts that are worth it
    parser.inline.ruler.disable(["newline", "emphasis", "entity"])  # they make no links
    parser.inline.ruler2.disable(["balance_pairs", "emphasis", "fragments_join"])
    for name, rule in (("text", _text), ("link", _link), ("image", _image), ("autolink", _autolink)):
        parser.inline.ruler.at(name, rule)
    parser.inline.ruler.at("html_inline", _html_inline)
    parser.inline.ruler.before("link", "template_tag", _tag)
    parser.block.ruler.at("reference", _reference)
    parser.block.ruler.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
    return parser


PARSER = _make_parser()
