"""Patch files for links that moved for good: for each handbook file one unified diff that `git apply` takes.

A URL is replaced where the registry says that it stands, and only if that line holds it as text. All other bytes of the
file stay as they are: line ends, a missing last one, letters in whatever encoding.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from linkwatch_pipeline.adapters.report_formats.csv_table import csv_line
from linkwatch_pipeline.adapters.report_formats.inert import web_address
from linkwatch_pipeline.adapters.report_formats.spelling import CannotStandHere, find_url, respell
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.findings import MovedLink
from linkwatch_pipeline.domain.links import Link

MAX_FILE_BYTES = 5_000_000  # as much as a scan reads
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_NO_NEWLINE = b"\n\\ No newline at end of file\n"
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One place where a moved link stands; `file` is None when no place is known. `why` says why it is not patched."""

    link_id: str
    url: str
    target: str
    file: str | None = None
    line: int | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """The diffs by handbook file, in the order of their names; the places that they change, and those left alone."""

    diffs: Mapping[str, bytes]
    patched: tuple[Move, ...]
    unpatched: tuple[Move, ...]


def make_patches(moved: Iterable[MovedLink], links: Mapping[str, Link], handbook: Path) -> Patches:
    """Diffs of the files under `handbook`, the folder that was scanned. Nothing is written.

    Raises: InvalidInput if it is no folder.
    """
    if not handbook.is_dir():
        raise InvalidInput("--handbook", f"there is no folder {str(handbook)!r}", "Name the folder that was scanned.")
    wanted: dict[str, list[Move]] = {}
    unpatched: list[Move] = []
    for move in (move for row in moved for move in _moves(row, links.get(row.link_id))):
        if move.why is not None or move.file is None:
            unpatched.append(move)
        else:
            wanted.setdefault(move.file, []).append(move)
    diffs: dict[str, bytes] = {}
    patched: list[Move] = []
    for file in sorted(wanted):
        diff, tried = _patch_file(handbook, file, wanted[file])
        patched += [move for move in tried if move.why is None]
        unpatched += [move for move in tried if move.why is not None]
        if diff:
            diffs[file] = diff
    return Patches(diffs=diffs, patched=tuple(patched), unpatched=tuple(unpatched))


def _moves(row: MovedLink, link: Link | None) -> Iterator[Move]:
    told = Move(link_id=row.link_id, url=row.url, target=row.target)
    if link is None or link.retired_at is not None or link.url != row.url:
        yield replace(told, why="the link is retired or has another URL by now")
    elif web_address(row.target) is None:
        yield replace(told, why="the new address is not one that could be watched")
    elif not link.places:
        yield replace(told, why="no place in the handbook is known; it was not registered by a scan")
    else:
        # A place may be named once for each time that the link stands on the line.
        for place in sorted(set(link.places), key=lambda place: (place.file, place.line)):
            yield replace(told, file=place.file, line=place.line)


def _patch_file(handbook: Path, file: str, moves: list[Move]) -> tuple[bytes, list[Move]]:
    """The diff of one file (empty if nothing changes), and the moves, each with why it was not made."""
    content = _read(handbook, file)
    if isinstance(content, str):
        return b"", [replace(move, why=content) for move in moves]
    encoding = "utf-8" if _is_utf8(content) else "latin-1"
    lines = [line for line in _LINE.findall(content) if line]
    tried: list[Move] = []
    for move in moves:
        number = (move.line or 0) - 1
        try:
            lines[number] = _replaced(lines[number] if number < len(lines) else b"", move, encoding)
            tried.append(move)
        except CannotStandHere as problem:
            tried.append(replace(move, why=str(problem)))
    return _diff(file, content, b"".join(lines)), tried


def _replaced(line: bytes, move: Move, encoding: str) -> bytes:
    text, file = line.decode(encoding), move.file or ""
    made, after = "", 0
    for old in find_url(text, move.url, file=file):
        made += text[after : old.start] + respell(move.target, old, file=file)
        after = old.end
    if not after:
        raise CannotStandHere("the line does not hold the URL as text: look for a definition elsewhere, or scan again")
    return (made + text[after:]).encode(encoding)


def _read(handbook: Path, file: str) -> bytes | str:
    """The bytes of a handbook file, or why they are not read. Nothing outside of the handbook is looked at."""
    if "\0" in file:
        return "no file has such a name"
    root, path = os.path.realpath(handbook), os.path.realpath(handbook / file)
    if os.path.commonpath([root, path]) != root or file.startswith("/") or ".." in file.split("/"):
        return "the file is outside of the handbook"
    if not os.path.isfile(path) or os.path.islink(handbook / file):
        return "there is no such file in the handbook"
    if os.path.getsize(path) > MAX_FILE_BYTES:
        return f"the file is larger than {MAX_FILE_BYTES:,} bytes"
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        return f"the file cannot be read: {error.strerror or error}"
    if content.startswith(_OTHER_ENCODINGS) or b"\0" in content:
        return "the file is binary, or in an encoding that git takes for binary"
    return content


def _diff(file: str, old: bytes, new: bytes) -> bytes:
    if old == new:
        return b""
    # git ends lines at LF alone.
    old_name, new_name = _quoted(f"a/{file}"), _quoted(f"b/{file}")
    parts = difflib.diff_bytes(difflib.unified_diff, _at_lf(old), _at_lf(new), old_name, new_name)
    return b"".join(part if part.endswith(b"\n") else part + _NO_NEWLINE for part in parts)


def _at_lf(content: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", content)


def _quoted(name: str) -> bytes:
    """A name as git reads it in the head of a diff."""
    raw = os.fsencode(name)
    if re.search(rb"[\x00-\x1f\"\\\x7f]", raw):
        return b'"' + re.sub(rb"[\x00-\x1f\"\\\x7f]", lambda sign: b"\\%03o" % sign[0][0], raw) + b'"'
    return raw + (b"\t" if b" " in raw else b"")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def unpatched_table(moves: Iterable[Move]) -> Iterator[str]:
    """The places that are left to a person, as lines of CSV."""
    yield csv_line(("link_id", "file", "line", "url", "new_url", "why"))
    for move in moves:
        yield csv_line((move.link_id, move.file, move.line, move.url, move.target, move.why))
