"""A file with everything that a store holds, to move it to another: JSON lines, whole or refused.

    {"linkwatch_history": 1, "source": "5f0c..."}
    {"links": {"id": "guide", "url": "https://docs.example.com/guide", ...}}
    {"end": {"records": 1, "sha256": "..."}}

A record stands under the name of its table, field by field as the columns of SQLite. The hash is over all lines before
the last one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from linkwatch_pipeline.adapters.named_file import regular_file
from linkwatch_pipeline.adapters.store.rows import TABLES, table_of
from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.domain.json_text import read_json
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.notices import Notice, bounded
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.sequences import MAX_MOVED_SEQUENCE, MAX_SEQUENCE
from linkwatch_pipeline.ports import StoredRecord

VERSION = 1
# Of a link with its places, of which there may be a million. Who writes a line that is longer would write it in vain.
MAX_LINE_BYTES = 64_000_000
_LONGEST = f"{MAX_LINE_BYTES // 1_000_000} MB"


def write_history(path: Path, records: Iterable[StoredRecord], *, source: str) -> int:
    """Write the records, none before all are there; how many.

    Args: source: a name that no other export has or had.
    Raises: ConfigurationError if there is such a file already or it cannot be written.
    """
    unfinished = path.with_name(path.name + ".part")
    try:
        if path.exists():
            raise ConfigurationError(f"{path} is there already; name another file.")
        try:
            with unfinished.open("wb") as file:
                count = _write(file, records, source)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from error
    return count


def _write(file: Any, records: Iterable[StoredRecord], source: str) -> int:
    digest, count = hashlib.sha256(), 0

    def put(document: object) -> None:
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise ConfigurationError(
                f"the record {line[:80].decode()}... has more than {_LONGEST}, the most that import-history takes: a "
                "link that stands in very many places? Let a scan find fewer (--exclude), and export again."
            )
        digest.update(line)
        file.write(line)

    put({"linkwatch_history": VERSION, "source": source})
    for record in records:
        table = table_of(record)
        values = zip(table.columns, table.encode(record), strict=True)
        put({table.name: {column: value for column, value in values if value is not None}})
        count += 1
    put({"end": {"records": count, "sha256": digest.hexdigest()}})
    return count


def check_history(path: Path) -> str:
    """Read all of a file; its source. Raises InvalidInput unless it is a whole history that this linkwatch knows."""
    digest, count, last = hashlib.sha256(), 0, b""
    source: str | None = None
    for line in _lines(path):
        if source is None:
            source = _source(path, line)
        if last:
            digest.update(last)
            count += 1
        last = line
    end = _document(path, last).get("end")
    if source is None or end != {"records": count - 1, "sha256": digest.hexdigest()}:
        _refuse(path, "is cut or was changed")
    for _ in read_history(path):
        pass  # what is refused is refused before anything is written
    return source


def read_history(path: Path) -> Iterator[StoredRecord]:
    """The records of a file that was checked, one after the other. Raises InvalidInput."""
    for line in _lines(path):
        ((name, fields),) = list(_document(path, line).items())[:1]
        if (table := TABLES.get(name)) is not None:
            try:
                record = table.decode([fields.get(column) for column in table.columns])
            except (TypeError, ValueError, KeyError, AttributeError) as error:
                _refuse(path, f"has a record of {name} that cannot be read ({error})")
            if (problem := _sequence_problem(record)) is not None:
                _refuse(path, problem, "Retire that link where it was exported, and export again.")
            yield bounded(record) if isinstance(record, Notice) else record
        elif name not in ("linkwatch_history", "end"):
            _refuse(path, f"has records of {name!r}, which this linkwatch does not know")


def _sequence_problem(record: StoredRecord) -> str | None:
    """What is the matter with a record whose sequence a store could not keep, or that leaves a link too few."""
    if isinstance(record, Observation) and record.sequence > MAX_SEQUENCE:
        return f"has an observation of link {record.link_id!r} with sequence {record.sequence}, above {MAX_SEQUENCE}"
    if isinstance(record, Link) and record.retired_at is None and record.highest_sequence > MAX_MOVED_SEQUENCE:
        return f"has link {record.id!r} with sequence {record.highest_sequence}, which leaves too few for later checks"
    return None


def _source(path: Path, line: bytes) -> str:
    header = _document(path, line)
    if "linkwatch_history" not in header or not isinstance(header.get("source"), str):
        _refuse(path, "is not a history of linkwatch")
    if header["linkwatch_history"] != VERSION:
        _refuse(path, f"has version {header['linkwatch_history']}, and this linkwatch knows version {VERSION}")
    return str(header["source"])


def _lines(path: Path) -> Iterator[bytes]:
    with regular_file(path) as file:
        for number in itertools.count(1):
            line = file.readline(MAX_LINE_BYTES + 1)
            if len(line) > MAX_LINE_BYTES:
                _refuse(path, f"has a line {number} of more than {_LONGEST}, which no export writes")
            if not line:
                return
            yield line


def _document(path: Path, line: bytes) -> dict[str, Any]:
    try:
        document = read_json(line)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not document:
        _refuse(path, "is not a history of linkwatch, or is cut")
    return document


def _refuse(path: Path, problem: str, mend: str = "Export it again.") -> NoReturn:
    raise InvalidInput("FILE", f"{path} {problem}", mend)
