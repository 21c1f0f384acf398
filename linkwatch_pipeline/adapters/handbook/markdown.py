"""Links in Markdown: CommonMark with GitHub's tables, bare URLs and footnotes, and HTML inside.

markdown-it parses; its rules are wrapped so that each link is noted with its place, which its tokens do not keep.
The line is the one on which the address is written; a reference link (`[text][name]`) stands where it is used, and
a definition that nothing uses is no link.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block
from markdown_it.rules_block.reference import reference as reference_rule
from markdown_it.rules_inline import StateInline, autolink, html_inline, image, link
from markdown_it.token import Token

from linkwatch_pipeline.adapters.handbook.bare_urls import BEGINNING, bare_url_at, decode_entities
from linkwatch_pipeline.adapters.handbook.html import links_in_html
from linkwatch_pipeline.adapters.handbook.lines import LineCounter, lines_between
from linkwatch_pipeline.adapters.handbook.templates import MARK, MARK_END, Marked, replace_templates
from linkwatch_pipeline.domain.handbook import FoundLink

MAX_NESTING = 100  # lists and quotes in each other; each costs the parser stack

_YAML_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# TOML's, JSON's of Gatsby, and the kind named behind the line as Eleventy takes it: `---json`.
_FENCED_FRONT_MATTER = re.compile(
    r"(?:(\+\+\+|;;;)|(---)(?:json|js|javascript|toml|ya?ml))[ \t]*\n(?:.*?\n)??(?:\1|\2)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_JSON_FRONT_MATTER = re.compile(r"\{\s*\"")  # Hugo's
_YAML_KEY = re.compile(r"[A-Za-z0-9_\"'][^:\n]*:(?=\s|$)")
# All hold what is indented below them, as a list item does; to CommonMark it would be a code block.
_FOOTNOTE = re.compile(r"^([ ]{0,3})\[\^[^\]\s]+\]:[ \t]*", re.MULTILINE)
_ADMONITION = re.compile(r"^([ ]*)(?:(?:!!!|\?\?\?\+?)[ ]+(?=[\w\"])|===[+!]?[ ]+(?=\"))", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:(?<=\S\n)|(?<=\S\n\n))([ ]{0,3}):[ ]{1,3}(?=\S)", re.MULTILINE)  # of the term above
# To kramdown and MkDocs, what is in such an element is Markdown.
_MARKDOWN_INSIDE = re.compile(
    r"<[a-z][a-z0-9]*+(?:\s++(?!markdown[\s=>])[^\s\"'>=]++(?:=(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?+)*+"
    r"\s++markdown(?:=[\"']?(?:1|block|span)\b|[\s>])",
    re.IGNORECASE,
)
_DIRECTIVE_OF_TEXT = re.compile(
    r"\{(?:note|warning|tip|hint|important|attention|caution|danger|error|admonition|seealso|todo|dropdown|details|"
    r"card|grid|grid-item|grid-item-card|tab-set|tab-item|sidebar|margin|aside|topic|epigraph|pull-quote|"
    r"versionadded|versionchanged|deprecated)\}"
)
_MODULE_CODE = re.compile(r"(?:import|export)\s")  # a paragraph of JavaScript in MDX
_LIST_ITEM = r"\1-   "
_CODE_TAG = re.compile(r"<(/?)(?:code|pre|kbd|samp|script|style|textarea)(?=[\s/>])", re.IGNORECASE)
_CODE_ELEMENT = re.compile(r"\n|(?<!`)<(/?)(code|pre|kbd|samp)(?=[\s/>])", re.IGNORECASE)
_END_OF_ANOTHER = re.compile(r"\s*</(?!(?:code|pre|kbd|samp)[\s/>])", re.IGNORECASE)
_INTERESTING = re.compile(rf"[\[<{MARK}]|{BEGINNING}")
_STOP = re.compile(rf"[\[\]!<\\`{MARK}]|{BEGINNING}")
_COMMENT_END = "-->"


@dataclass(slots=True)
class _Notes:
    """What the wrapped rules noted about one inline text: (offset, reference), and template tags beside the links."""

    found: list[tuple[int, str]] = field(default_factory=list)
    tags: list[tuple[int, str]] = field(default_factory=list)
    code_depth: int = 0
    too_deep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownLinks:
    """The links of a text, and whether something was nested so deeply that it was not read."""

    links: tuple[FoundLink, ...]
    too_deep: bool


def markdown_links(text: str, *, is_mdx: bool = False) -> MarkdownLinks:
    """Every link and image of a Markdown text with `\\n` line ends, in order."""
    marked = replace_templates(_without_front_matter(text))
    body = marked.text
    for holder in (_FOOTNOTE, _DEFINITION, _ADMONITION):
        body = holder.sub(_LIST_ITEM, body)
    return _Reader(body, marked, is_mdx=is_mdx).read()


class _Reader:
    """Goes through the blocks of one text."""

    def __init__(self, body: str, marked: Marked, *, is_mdx: bool) -> None:
        self._body = body
        self._is_mdx = is_mdx
        self._marked = marked
        self._lines = _original_lines(body)
        self._links: list[FoundLink] = []
        self._in_comment = False
        self._code_elements = _code_elements(body)
        self._code_until = -1  # the line that ends a code element which an HTML block began
        self._too_deep = False

    def read(self) -> MarkdownLinks:
        env: dict[str, Any] = {}
        for token in _PARSER.parse(self._body, env):
            self._too_deep = self._too_deep or token.level >= MAX_NESTING - 1
            if token.type == "html_block":
                self._read_html(token)
            elif token.type == "fence" and _DIRECTIVE_OF_TEXT.match(token.info):
                self._read_directive(token)
            elif token.type == "inline" and not self._is_module_code(token):
                self._read_inline(token, env)
        ordered = sorted(self._links, key=lambda link: link.line)
        return MarkdownLinks(links=tuple(ordered), too_deep=self._too_deep)

    def _read_directive(self, token: Token) -> None:
        """A fence of MyST whose content is text."""
        first = self._lines[min((token.map or [0])[0] + 1, len(self._lines) - 1)]
        inner = _Reader(token.content, self._marked, is_mdx=False).read()
        self._too_deep = self._too_deep or inner.too_deep
        self._links.extend(FoundLink(text=link.text, line=first + link.line - 1) for link in inner.links)

    def _is_module_code(self, token: Token) -> bool:
        return self._is_mdx and token.level == 1 and _MODULE_CODE.match(token.content) is not None

    def _read_html(self, token: Token) -> None:
        start = self._leave_comment(token.content)
        if start is None:
            return
        found = links_in_html(token.content[start:])
        self._in_comment = found.comment_open
        begin, after = token.map or (0, 0)
        ends = [self._code_elements.get(line, -1) for line in range(begin, after)]
        # What encloses a code element ends it, too: one whose end is missing must not swallow the rest.
        goes_on = _END_OF_ANOTHER.match(token.content) is None
        self._code_until = max(self._code_until if goes_on else -1, *ends, -1)
        self._note(token, [(start + reference.offset, reference.text) for reference in found.references])

    def _read_inline(self, token: Token, env: MutableMapping[str, Any]) -> None:
        start = self._leave_comment(token.content)
        if start is None or _INTERESTING.search(token.content) is None:
            return
        within = token.map is not None and token.map[0] <= self._code_until
        env["notes"] = notes = _Notes(code_depth=int(within))
        _PARSER.inline.parse(token.content, _PARSER, env, [])
        self._too_deep = self._too_deep or notes.too_deep
        for offset, tag in notes.tags:
            notes.found.extend((offset, url) for url in self._marked.urls_in_marks(tag))
        self._note(token, [(offset, text) for offset, text in sorted(notes.found) if offset >= start])

    def _leave_comment(self, content: str) -> int | None:
        """Where the part after an HTML comment begins that an earlier block opened; None if it is all comment."""
        if not self._in_comment:
            return 0
        end = content.find(_COMMENT_END)
        self._in_comment = end < 0
        return end + len(_COMMENT_END) if end >= 0 else None

    def _note(self, token: Token, references: Sequence[tuple[int, str]]) -> None:
        """Keep references of a block, given with their offsets in it in order."""
        first = token.map[0] if token.map is not None else 0
        counter = LineCounter(token.content, self._lines[min(first, len(self._lines) - 1)])
        for offset, text in references:
            line = counter.line(offset)
            urls = self._marked.urls_in_marks(text) or [self._marked.restore(text)]
            self._links.extend(FoundLink(text=url, line=line) for url in urls)


def _code_elements(body: str) -> dict[int, int]:
    """The line that closes a code element, by the line that opens it; one that nobody closes is none."""
    if "</" not in body:
        return {}
    opened: dict[str, list[int]] = defaultdict(list)
    closed: dict[int, int] = {}
    line = 0
    for tag in _CODE_ELEMENT.finditer(body):
        if tag[0] == "\n":
            line += 1
        elif not tag[1]:
            opened[tag[2].lower()].append(line)
        elif opened[tag[2].lower()]:
            begin = opened[tag[2].lower()].pop()
            closed[begin] = max(line, closed.get(begin, line))
    return closed


def _without_front_matter(text: str) -> str:
    """The text with blank lines for its front matter, if what stands there can be that."""
    end = _end_of_front_matter(text)
    return "\n" * text.count("\n", 0, end) + text[end:]


def _end_of_front_matter(text: str) -> int:
    yaml = _YAML_FRONT_MATTER.match(text)
    if yaml is not None:
        meant = [line for line in (yaml[1] or "").splitlines() if line.strip() and not line.lstrip().startswith("#")]
        return yaml.end() if not meant or _YAML_KEY.match(meant[0]) is not None else 0
    if _JSON_FRONT_MATTER.match(text) is not None:
        return _end_of_json(text)
    fenced = _FENCED_FRONT_MATTER.match(text)
    return fenced.end() if fenced is not None else 0


def _end_of_json(text: str) -> int:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return 0
    rest = re.compile(r"[ \t]*(?:\n|\Z)").match(text, end)
    return rest.end() if rest is not None else 0


def _original_lines(body: str) -> list[int]:
    """For each line of the marked text, the number of the line of the file on which it begins."""
    numbers, number = [], 1
    for line in body.split("\n"):
        numbers.append(number)
        number += 1 + lines_between(line, 0, len(line))
    return numbers


def _notes(state: StateInline) -> _Notes:
    notes: _Notes = state.env["notes"]
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
    parser.core.ruler.disable(["inline", "text_join"])  # `_Reader` parses the inline texts that are worth it
    parser.inline.ruler.disable(["newline", "emphasis", "entity"])  # they make no links
    parser.inline.ruler2.disable(["balance_pairs", "emphasis", "fragments_join"])
    for name, rule in (("text", _text), ("link", _link), ("image", _image), ("autolink", _autolink)):
        parser.inline.ruler.at(name, rule)
    parser.inline.ruler.at("html_inline", _html_inline)
    parser.inline.ruler.before("link", "template_tag", _tag)
    parser.block.ruler.at("reference", _reference)
    parser.block.ruler.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
    return parser


_PARSER = _make_parser()
