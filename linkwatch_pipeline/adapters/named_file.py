"""Files that a person names. They may be anything: a pipe that nobody writes to, a device that never ends, no text."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from linkwatch_pipeline.domain.errors import InvalidInput

MAX_BYTES = 5_000_000


@contextmanager
def regular_file(path: Path) -> Iterator[BinaryIO]:
    """An open file. Raises InvalidInput if it is not there, cannot be read, or is a pipe, a device or a folder."""
    try:
        # Not to wait for a pipe's other end.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(str(path), "it is not a regular file", "Name a file.")
            yield file
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read_regular_text(path: Path, *, most: int = MAX_BYTES) -> str:
    """What a file says, without a mark of byte order before it. Raises InvalidInput as `regular_file` and `decoded`."""
    with regular_file(path) as file:
        return decoded(path, _bounded(path, file, most))


def read_any_text(path: Path, *, most: int = MAX_BYTES) -> str:
    """The same of a file or a pipe, for which is waited, as of `<(...)` and /dev/stdin."""
    try:
        with path.open("rb") as file:
            return decoded(path, _bounded(path, file, most))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def decoded(path: Path, content: bytes) -> str:
    """A text in UTF-8. Raises InvalidInput, naming the line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{path}:{line}", "this is not UTF-8", "Save the file as UTF-8.") from error


def _bounded(path: Path, file: BinaryIO, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise InvalidInput(str(path), f"it is larger than {most // 1_000_000} MB", "Split it.")
    return content


def _unreadable(path: Path, error: OSError | ValueError) -> InvalidInput:
    problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InvalidInput(str(path), f"it cannot be read: {problem}", "Name a readable file.")
