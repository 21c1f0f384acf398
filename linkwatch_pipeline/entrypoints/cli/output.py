"""How commands print: tables and sentences for people, one JSON document for machines, complaints on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

import click


def print_json(document: object) -> None:
    """One JSON document and nothing else."""
    click.echo(json.dumps(document, indent=2))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be. None is shown as `-`."""
    lines = [list(headers), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def say(sentence: str) -> None:
    """Tell a person something, on stdout."""
    click.echo(_printable(sentence))


def note(sentence: str) -> None:
    """Tell a person something that is not the answer, on stderr."""
    click.echo(_printable(sentence), err=True)


def complain(sentence: str) -> None:
    """Say what is wrong, on stderr."""
    if sys.stdout is not None:  # closed by whoever started us
        sys.stdout.flush()
    note(f"linkwatch: {sentence}")


def one_line(text: str) -> str:
    """What others wrote, such as the name of a file, so that it cannot pass for a line of ours."""
    return _printable(text).replace("\n", "\\n")


def _cell(value: object) -> str:
    from linkwatch_pipeline.domain.timestamps import format_seconds

    if isinstance(value, datetime):
        return format_seconds(value)
    return "-" if value is None else one_line(str(value))


def _printable(text: str) -> str:
    """Control characters and lone surrogates escaped: what others wrote must not move the cursor."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
