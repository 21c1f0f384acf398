"""Reads a table from a file, within bounds: what somebody hands over may be anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from linkwatch_pipeline.adapters.named_file import read_regular_text
from linkwatch_pipeline.adapters.tables.broken import BrokenTable
from linkwatch_pipeline.adapters.tables.csv_table import read_csv
from linkwatch_pipeline.adapters.tables.json_table import read_json
from linkwatch_pipeline.adapters.tables.url_list import read_url_list
from linkwatch_pipeline.domain.errors import InvalidInput, MissingExtra
from linkwatch_pipeline.domain.tables import Table


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
    text = _text(path)
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


def _text(path: Path) -> str:
    text = read_regular_text(path)
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise InvalidInput(f"{path}:{line}", "there is a NUL character", "Save the file as plain text in UTF-8.")
    return text
