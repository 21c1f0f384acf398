"""Kinds of values on the command line, refused in the same words as everywhere else, before a home is opened.

Each imports its rule when it is used, so that `--help` loads none of them. click shows the function's name in the help.
"""

from __future__ import annotations

import math
import re
from typing import Any

import click

_INTEGER = re.compile(r"-?[0-9]{1,19}")

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


class Seconds(click.FloatRange):
    """Seconds within bounds. click's own range lets `nan` through, which is within none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return seconds


def link_id(value: str) -> str:
    from linkwatch_pipeline.domain.links import check_link_id

    return check_link_id(value)


def url(value: str) -> str:
    from linkwatch_pipeline.domain.links import check_url

    return check_url(value)


def team(value: str) -> str:
    from linkwatch_pipeline.domain.links import check_team

    return check_team(value)


def address(value: str) -> str:
    from linkwatch_pipeline.domain.links import check_address

    return check_address(value)


def text(value: str) -> str | None:
    from linkwatch_pipeline.domain.links import check_marker

    return check_marker(value)


def confirmations(value: str) -> int | None:
    from linkwatch_pipeline.domain.links import MAX_CONFIRM, check_confirm

    return check_confirm(_integer(value, "confirm", f"Give a whole number from 1 to {MAX_CONFIRM}."))


def sequence(value: str) -> int:
    """A whole number; how high it may be depends on its link."""
    from linkwatch_pipeline.domain.sequences import MAX_GIVEN_SEQUENCE

    return _integer(value, "sequence", f"Give a whole number from 0 to {MAX_GIVEN_SEQUENCE}.")


def status(value: str) -> str:
    """An HTTP status or `none`, as written: click takes None for a value that was not given."""
    from linkwatch_pipeline.domain.errors import InvalidInput

    if not re.fullmatch(r"none|[1-9][0-9]{2}", value):
        raise InvalidInput("status", f"{value[:40]!r} is not an HTTP status", "Give three digits, or none.")
    return value


def _integer(value: str, field: str, mend: str) -> int:
    """A whole number in plain digits: not `1.0`, `1_000` or `true`."""
    from linkwatch_pipeline.domain.errors import InvalidInput

    if not _INTEGER.fullmatch(value):
        raise InvalidInput(field, f"{value[:40]!r} is not a whole number", mend)
    return int(value)
