"""Links in Markdown: CommonMark with GitHub's tables, bare URLs and footnotes, and HTML inside.

markdown-it parses, by the rules in `markdown_rules`. The line is the one on which the address is written; a reference
link (`[text][name]`) stands where it is used, and a definition that nothing uses is no link.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it.token import Token

from linkwatch_pipeline.adapters.handbook.bare_urls import BEGINNING
from linkwatch_pipeline.adapters.handbook.front_matter import without_front_matter
from linkwatch_pipeline.adapters.handbook.html import links_in_html
from linkwatch_pipeline.adapters.handbook.lines import LineCounter, lines_between
from linkwatch_pipeline.adapters.handbook.markdown_rules import MAX_NESTING, PARSER, Notes
from linkwatch_pipeline.adapters.handbook.templates import MARK, Marked, replace_templates
from linkwatch_pipeline.domain.handbook import FoundLink

# All hold what is indented below them, as a list item does; to CommonMark it would be a code block.
_FOOTNOTE = re.compile(r"^([ ]{0,3})\[\^[^\]\s]+\]:[ \t]*", re.MULTILINE)
_ADMONITION = re.compile(r"^([ ]*)(?:(?:!!!|\?\?\?\+?)[ ]+(?=[\w\"])|===[+!]?[ ]+(?=\"))", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:(?<=\S\n)|(?<=\S\n\n))([ ]{0,3}):[ ]{1,3}(?=\S)", re.MULTILINE)  # of the term above
_DIRECTIVE_OF_TEXT = re.compile(
    r"\{(?:note|warning|tip|hint|important|attention|caution|danger|error|admonition|seealso|todo|dropdown|details|"
    r"card|grid|grid-item|grid-item-card|tab-set|tab-item|sidebar|margin|aside|topic|epigraph|pull-quote|"
    r"versionadded|versionchanged|deprecated)\}"
)
_MODULE_CODE = re.compile(r"(?:import|export)\s")  # a paragraph of JavaScript in MDX
_LIST_ITEM = r"\1-   "
_CODE_ELEMENT = re.compile(r"\n|(?<!`)<(/?)(code|pre|kbd|samp)(?=[\s/>])", re.IGNORECASE)
_END_OF_ANOTHER = re.compile(r"\s*</(?!(?:code|pre|kbd|samp)[\s/>])", re.IGNORECASE)
_INTERESTING = re.compile(rf"[\[<{MARK}]|{BEGINNING}")
_COMMENT_END = "-->"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownLinks:
    """The links of a text, and whether something was nested so deeply that it was not read."""

    links: tuple[FoundLink, ...]
    too_deep: bool


def markdown_links(text: str, *, is_mdx: bool = False) -> MarkdownLinks:
    """Every link and image of a Markdown text with `\\n` line ends, in order."""
    marked = replace_templates(without_front_matter(text))
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
        for token in PARSER.parse(self._body, env):
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
        env["notes"] = notes = Notes(code_depth=int(within))
        PARSER.inline.parse(token.content, PARSER, env, [])
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


def _original_lines(body: str) -> list[int]:
    """For each line of the marked text, the number of the line of the file on which it begins."""
    numbers, number = [], 1
    for line in body.split("\n"):
        numbers.append(number)
        number += 1 + lines_between(line, 0, len(line))
    return numbers
