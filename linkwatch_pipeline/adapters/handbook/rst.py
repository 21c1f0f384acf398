"""Links in reStructuredText, parsed by docutils. Directives and roles of Sphinx are read for what they contain.

Nothing is included from other files and nothing is executed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en as english
from docutils.parsers.rst.states import Inliner
from docutils.statemachine import StringList
from docutils.utils import SystemMessage, unescape

from linkwatch_pipeline.adapters.handbook.html import links_in_html
from linkwatch_pipeline.domain.handbook import FoundLink

_SETTINGS = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": True,  # of raw HTML in the text itself; files stay closed
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "smart_quotes": False,
    "line_length_limit": 10_000_000,
}
_MAX_BLOCK_LINES = 2000
_DIRECTIVE = re.compile(r"^\s*\.\.\s(?:\|[^|\n]+\|\s)?\s*([A-Za-z][\w:.+-]*)::", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:.+-]*):`")
_SUBSTITUTION = re.compile(r"\|([^\s|](?:[^|\n]*[^\s|])?)(?=\|)")
_DEFINED = re.compile(r"^\s*\.\.\s+\|([^|\n]+)\|\s", re.MULTILINE)
_CODE = (
    "literalinclude",
    "doctest",
    "testcode",
    "testoutput",
    "testsetup",
    "highlight",
    "graphviz",
    "uml",
    "mermaid",
    "plantuml",
    "ipython",
    "jupyter-execute",
    "code-cell",
    "productionlist",
    "prompt",
    "index",
)


class _Container(Directive):
    """Any directive that docutils does not know: its arguments and content are read as text, and URLs as options."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    class _AnyOption(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return directives.unchanged

    option_spec: ClassVar[dict[str, Any] | None] = _AnyOption({"class": directives.unchanged})

    def run(self) -> Sequence[nodes.Node]:
        if self.name in _CODE:
            return []
        container = nodes.container()
        lines = [line for argument in self.arguments for line in argument.split("\n")]
        lines += [value for value in self.options.values() if value is not None and "://" in value]
        self.state.nested_parse(StringList(lines, self.block_text), self.lineno - 1, container)
        self.state.nested_parse(self.content, self.content_offset, container)
        return [container]


def rst_links(text: str) -> list[FoundLink]:
    """Every link and image of a text, in order of appearance. Raises ValueError for one that cannot be read."""
    _accept_unknown_names(text)
    try:
        document = publish_doctree(text + _missing_substitutions(text), settings_overrides=_SETTINGS)
    except SystemMessage as error:
        raise ValueError(f"not reStructuredText: {error}") from error
    places = _Places(text)
    return sorted(
        (FoundLink(text=reference, line=places.line_of(node, reference)) for node, reference in _references(document)),
        key=lambda link: link.line,
    )


def _references(document: nodes.document) -> Iterator[tuple[nodes.Element, str]]:
    for node in document.findall(nodes.Element):
        if isinstance(node.parent, nodes.substitution_definition):
            continue  # its copies stand where it is used
        if isinstance(node, nodes.reference) and "refuri" in node:
            yield node, str(node["refuri"])
        elif isinstance(node, nodes.image) and "uri" in node:
            yield node, str(node["uri"])
        elif isinstance(node, nodes.raw) and "html" in node["format"].split():
            yield from ((node, link.text) for link in links_in_html(node.astext()).references)


class _Places:
    """Finds lines, since docutils keeps those of blocks only. Ask in document order."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._seen: Counter[tuple[int, str]] = Counter()

    def line_of(self, node: nodes.Element, reference: str) -> int:
        """The line of the address within its block, or of the words of a reference to a definition."""
        block = _line_of_block(node)
        words = reference if reference in node.rawsource else node.rawsource or reference
        sought = words.split("\n")[0].strip()
        self._seen[block, sought] += 1
        to_pass = self._seen[block, sought]
        for number in range(block, min(len(self._lines), block + _MAX_BLOCK_LINES) + 1):
            to_pass -= self._lines[number - 1].count(sought) if sought else 0
            if to_pass <= 0:
                return number
        return block


def _line_of_block(node: nodes.Element) -> int:
    """The first line of the paragraph around a node, of itself if it stands alone."""
    around: nodes.Node = node.parent if isinstance(node.parent, nodes.TextElement) else node
    while around.line is None and around.parent is not None:
        around = around.parent
    above = 2 if isinstance(node.parent, nodes.title) else 0  # docutils counts a title from below
    return max(1, (around.line or 1) - above)


def _missing_substitutions(text: str) -> str:
    """Definitions for `|release|` and others that Sphinx fills in; without one docutils fails on a nested use."""
    defined = {" ".join(match[1].lower().split()) for match in _DEFINED.finditer(text)}
    if not defined:
        return ""
    used = {" ".join(match[1].lower().split()) for match in _SUBSTITUTION.finditer(text)}
    return "".join(f"\n\n.. |{name}| replace:: \\?\n" for name in sorted(used - defined))


def _accept_unknown_names(text: str) -> None:
    """Teach docutils the names in a text that it does not know; its registries live as long as the process."""
    for name in {match[1].lower() for match in _DIRECTIVE.finditer(text)} - english.directives.keys():
        directives.register_directive(name, _Container)
    for name in {match[1].lower() for match in _ROLE.finditer(text)} - english.roles.keys():
        roles.register_local_role(name, _plain_role)  # type: ignore[arg-type]  # the stub knows no plain nodes


def _plain_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Inliner, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    title, target = _title_and_target(unescape(text))
    if name.lower() == "download" and "://" in target:  # Sphinx copies a file; what is elsewhere becomes a link
        return [nodes.reference(rawtext, title or target, refuri=target)], []
    return [nodes.inline(rawtext, text)], []


def _title_and_target(text: str) -> tuple[str, str]:
    """The parts of `words <target>`; the target alone has no words."""
    title, bracket, target = text.rpartition("<")
    return (title.strip(), target[:-1].strip()) if bracket and target.endswith(">") else ("", text.strip())
