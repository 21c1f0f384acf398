"""Reads a table from a file, within bounds: what somebody hands over may be anything."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from linkwatch_pipeline.adapters.tables.broken import BrokenTable
from linkwatch_pipeline.adapters.tables.csv_table import read_csv
from linkwatch_pipeline.adapters.tables.json_table import read_json
from linkwatch_pipeline.adapters.tables.url_list import read_url_list
from linkwatch_pipeline.domain.errors import InvalidInput, MissingExtra
from linkwatch_pipeline.domain.tables import Table

MAX_BYTES = 5_000_000


def read_table(path: Path, kinds: Sequence[str], *, otherwise: str | None = None) -> Table:
    """The table in a file of one of these kinds.

    Args:
        kinds: endings such as '.csv'.
        otherwise: the kind of a file with any other ending; None refuses it.
    Raises: InvalidInput (not there, of another kind, too large, not UTF-8, not well-formed), MissingExtra.
    """
    kind = path.suffix.lower()
    if kind not in kinds:
        if otherwise is None:
            shown = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
            raise InvalidInput(str(path), "its ending does not say what kind of file it is", f"Name a {shown} file.")
        kind = otherwise
    text = _text(path, _bytes(path))
    try:
        return _READERS[kind](text)
    except BrokenTable as broken:
        raise InvalidInput(f"{path}:{broken.line}", broken.problem, broken.mend) from broken


def _read_yaml(text: str) -> Table:
    if find_spec("yaml") is None:
        raise MissingExtra("scan", "reading YAML")
    from linkwatch_pipeline.adapters.tables.yaml_table import read_yaml

    return read_yaml(text)


_READERS: Mapping[str, Callable[[str], Table]] = {
    ".csv": read_csv,
    ".json": read_json,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".txt": read_url_list,
}


def _bytes(path: Path) -> bytes:
    try:
        # Not to wait for a pipe's other end.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(str(path), "it is not a regular file", "Name a file.")
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(str(path), f"it cannot be read: {problem}", "Name a readable file.") from error
    if len(content) > MAX_BYTES:
        raise InvalidInput(str(path), f"it is larger than {MAX_BYTES // 1_000_000} MB", "Split it.")
    return content


def _text(path: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{path}:{line}", "this is not UTF-8", "Save the file as UTF-8.") from error
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise InvalidInput(f"{path}:{line}", "there is a NUL character", "Save the file as plain text in UTF-8.")
    return text
