"""How commands print: tables and sentences for people, one JSON document for machines, complaints on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain

import click


def print_json(document: object) -> None:
    """One JSON document and nothing else."""
    click.echo(json.dumps(document, indent=2))


def print_json_list(documents: Iterable[object]) -> None:
    """As `print_json` prints a list, but one after the other: there may be hundreds of thousands."""
    before = "["
    for document in documents:
        click.echo(before + "\n  " + json.dumps(document, indent=2).replace("\n", "\n  "), nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be. None is shown as `-`."""
    held = list(rows)
    print_long_table(headers, lambda: held)


def print_long_table(headers: Sequence[str], rows: Callable[[], Iterable[Sequence[object]]]) -> None:
    """As `print_table`, but the rows are gone through twice and not held; what is new the second time may stick out."""
    widths = [len(header) for header in headers]
    for row in rows():
        widths = [max(width, len(_cell(value))) for width, value in zip(widths, row, strict=True)]
    for line in chain([headers], ([_cell(value) for value in row] for row in rows())):
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
