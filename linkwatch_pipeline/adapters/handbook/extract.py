"""Takes the links out of one file of any kind. What cannot be read is a value that says why, never an exception."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from linkwatch_pipeline.domain.handbook import FoundLink

MAX_FILE_BYTES = 5_000_000

_SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdown": "markdown",
    ".mkd": "markdown",
    ".mdx": "mdx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".rst": "rst",
    ".txt": "text",
    ".csv": "csv",
    ".tsv": "csv",
}
# The longest first: UTF-32's begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The links of a file, and why they may not be all of them (None if they are)."""

    links: tuple[FoundLink, ...] = ()
    problem: str | None = None


def kind_of(path: PurePath) -> str | None:
    """The kind of a file by its name, None if it is not a scanned one."""
    name = path.name.lower()
    if name.startswith("sitemap") and name.endswith(".xml"):
        return "sitemap"
    return _SUFFIXES.get(path.suffix.lower())


def extract_links(path: Path, kind: str) -> Extracted:
    """Read a file of a scanned kind."""
    try:
        content = _read(path)
    except OSError as error:
        return Extracted(problem=f"cannot be read: {error.strerror or error}")
    if isinstance(content, str):
        return Extracted(problem=content)
    text, encoding_problem = _decode(content)
    if text is None:
        return Extracted(problem=encoding_problem)
    extracted = _parse(text.replace("\r\n", "\n").replace("\r", "\n"), kind)
    problems = [problem for problem in (encoding_problem, extracted.problem) if problem is not None]
    return Extracted(links=extracted.links, problem="; ".join(problems) or None)


def _read(path: Path) -> bytes | str:
    """The bytes of a file, or why they are not read. A pipe or device would never end, so it is not opened for long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "not a regular file"
        if status.st_size > MAX_FILE_BYTES:
            return f"too large: {status.st_size:,} bytes, at most {MAX_FILE_BYTES:,} are read"
        content = file.read(MAX_FILE_BYTES + 1)
    return content if len(content) <= MAX_FILE_BYTES else f"too large: more than {MAX_FILE_BYTES:,} bytes"


def _decode(content: bytes) -> tuple[str | None, str | None]:
    """(text, problem): no text for a binary file, a text with a problem for one whose letters had to be guessed."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(encoding), None
            except UnicodeDecodeError:
                break
    if b"\0" in content:
        return None, "a binary file: it holds NUL bytes"
    try:
        return content.decode("utf-8"), None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return content.decode("latin-1"), f"not UTF-8 (line {line}); read as Latin-1, letters beyond ASCII may be wrong"


def _parse(text: str, kind: str) -> Extracted:
    try:
        return _PARSERS[kind](text)
    except RecursionError:
        return Extracted(problem="nested too deeply to be read")
    except ValueError as error:
        return Extracted(problem=str(error))
    except MemoryError:
        raise
    except Exception as error:  # a fault of a parser's own must not take the other files with it
        return Extracted(problem=f"the parser failed on it ({type(error).__name__})")


# Each parser is imported when its kind turns up.
def _markdown(text: str, *, is_mdx: bool = False) -> Extracted:
    from linkwatch_pipeline.adapters.handbook.markdown import markdown_links
    from linkwatch_pipeline.adapters.handbook.markdown_rules import MAX_NESTING

    found = markdown_links(text, is_mdx=is_mdx)
    deep = f"nested more than {MAX_NESTING} deep; what lies deeper was not read"
    return Extracted(links=found.links, problem=deep if found.too_deep else None)


def _mdx(text: str) -> Extracted:
    return _markdown(text, is_mdx=True)


def _html(text: str) -> Extracted:
    from linkwatch_pipeline.adapters.handbook.html import html_file_links

    return _whole(html_file_links(text))


def _rst(text: str) -> Extracted:
    from linkwatch_pipeline.adapters.handbook.rst import rst_links

    return _whole(rst_links(text))


def _text(text: str) -> Extracted:
    from linkwatch_pipeline.adapters.handbook.text import text_links

    return _whole(text_links(text))


def _csv(text: str) -> Extracted:
    from linkwatch_pipeline.adapters.handbook.csv_table import csv_links

    return _whole(csv_links(text))


def _sitemap(text: str) -> Extracted:
    from linkwatch_pipeline.adapters.handbook.sitemap import sitemap_links

    return _whole(sitemap_links(text))


def _whole(links: Sequence[FoundLink]) -> Extracted:
    return Extracted(links=tuple(links))


_PARSERS: dict[str, Callable[[str], Extracted]] = {
    "markdown": _markdown,
    "mdx": _mdx,
    "html": _html,
    "rst": _rst,
    "text": _text,
    "csv": _csv,
    "sitemap": _sitemap,
}
