"""Finds the files of a handbook, in sorted order. Hidden folders are left out; links to folders are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linkwatch_pipeline.adapters.handbook.extract import kind_of

MAX_PATH_BYTES = 4096  # Linux; a folder deeper down can be neither listed nor told from a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file of a scanned kind at `path`, or a `problem` with one, or why it was `passed` over.

    `file` is its path under the PATH given, with `/`; bytes that are no UTF-8 are shown escaped.
    """

    file: str
    path: Path
    kind: str = ""
    problem: str | None = None
    passed: str | None = None


def walk(path: Path) -> Iterator[Candidate]:
    """The candidates of one PATH: the file itself, or everything under a folder."""
    if path.is_dir():
        yield from _walk_folder(path)
        return
    kind = kind_of(path)
    if kind is None:
        yield Candidate(file=_shown(path.name), path=path, problem="not a kind of file that is scanned")
    else:
        yield Candidate(file=_shown(path.name), path=path, kind=kind)


def _walk_folder(root: Path) -> Iterator[Candidate]:
    real_root = os.path.realpath(root)
    waiting: list[tuple[str, Path]] = [("", root)]  # the next one last; a stack, since folders may be nested deeply
    while waiting:
        name, path = waiting.pop()
        if not os.path.isdir(path):
            yield from _candidate(name, path, real_root)
        elif name and path.name.startswith("."):
            continue
        elif name and os.path.islink(path):
            yield Candidate(file=_shown(name), path=path, passed="a link to a folder, which is not followed")
        else:
            try:
                names = sorted(os.listdir(path), reverse=True)
            except OSError as error:
                problem = f"cannot be read: {error.strerror or error}"
                yield Candidate(file=_shown(name or "."), path=path, problem=problem)
                continue
            waiting.extend((f"{name}/{child}" if name else child, path / child) for child in names)


def _candidate(name: str, path: Path, real_root: str) -> Iterator[Candidate]:
    kind = kind_of(path)
    if kind is None:
        if len(os.fsencode(path)) >= MAX_PATH_BYTES:
            yield Candidate(file=_shown(name), path=path, problem="cannot be read: its path is too long")
        return
    if os.path.islink(path):
        target = os.path.realpath(path)
        if os.path.commonpath([real_root, target]) != real_root:
            yield Candidate(file=_shown(name), path=path, passed="a link to a file outside of the folder")
            return
    yield Candidate(file=_shown(name), path=path, kind=kind)


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
