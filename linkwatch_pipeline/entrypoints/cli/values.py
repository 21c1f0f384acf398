"""Kinds of values on the command line, refused in the same words as everywhere else, before a home is opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

_INTEGER = re.compile(r"-?[0-9]{1,19}")


class Checked(click.ParamType):
    """A value that a rule of the domain checks; the rule is imported when it is needed.

    Args: name: what the help calls it.  check: (value, field) -> the value, or InvalidInput.
    """

    def __init__(self, name: str, check: Callable[[Any, str], object]) -> None:
        self.name = name
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        return self._check(value, _field(param))


def _field(param: click.Parameter | None) -> str:
    """The option as it is written, or the argument's name."""
    if isinstance(param, click.Option):
        return param.opts[0]
    return param.name.replace("_", " ") if param is not None and param.name is not None else "value"


def _link_id(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_link_id

    return check_link_id(value, field)


def _url(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_url

    return check_url(value, field)


def _team(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_team

    return check_team(value, field)


def _address(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_address

    return check_address(value, field)


def _marker(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_marker

    return check_marker(value, field)


def _confirm(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_confirm

    return check_confirm(_integer(value), field)


def _sequence(value: Any, field: str) -> object:
    from linkwatch_pipeline.domain.links import check_sequence

    return check_sequence(_integer(value), field)


def _integer(value: Any) -> Any:
    """A whole number in plain digits as int; anything else as it is, for the rule to refuse."""
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value


LINK_ID = Checked("LINK_ID", _link_id)
URL = Checked("URL", _url)
TEAM = Checked("TEAM", _team)
ADDRESS = Checked("ADDR", _address)
MARKER = Checked("TEXT", _marker)
CONFIRM = Checked("N", _confirm)
SEQUENCE = Checked("N", _sequence)

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
