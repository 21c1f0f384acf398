"""What kinds of values settings have: how one is read from a variable's text, and what it must be.

A kind's `check` returns the value as it is kept. It raises ValueError saying what the value must be, or InvalidInput
where a sentence of its own tells more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """`read` may raise InvalidInput too, or ValueError: then the text itself is refused in the words of `check`."""

    read: Callable[[str], object] = str
    check: Callable[[Any], T]


def entry(default: T, kind: Kind[T], about: str) -> T:
    """The field of one setting; `about` explains it in a new `linkwatch.toml`."""
    described = {"kind": kind, "about": about}
    made: T = field(default_factory=lambda: default, metadata=described)
    return made


def text(must_be: str, fits: Callable[[str], object]) -> Kind[str]:
    """A text that fits."""

    def check(value: object) -> str:
        if not isinstance(value, str) or not fits(value):
            raise ValueError(must_be)
        return value

    return Kind(check=check)


def text_like(pattern: str, must_be: str) -> Kind[str]:
    """A text that the pattern describes whole."""
    return text(must_be, re.compile(pattern).fullmatch)


def one_of(names: Collection[str], *, spelled: Callable[[str], str] = '"{}"'.format) -> Kind[str]:
    """One of these words."""
    return text("one of " + ", ".join(map(spelled, names)), lambda value: value in names)


def whole_number(lowest: int, highest: int) -> Kind[int]:
    """A whole number from `lowest` to `highest`."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return value

    return Kind(read=int, check=check)


def seconds(most: float) -> Kind[float]:
    """A number of seconds from 0 to `most`."""

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise ValueError(f"a number of seconds up to {most:g}")
        return float(value)

    return Kind(read=float, check=check)


def list_of(each: Callable[[str], str], must_be: str) -> Kind[tuple[str, ...]]:
    """Texts, each as `each` returns it; in a variable they stand between commas."""

    def check(value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise ValueError(must_be)
        return tuple(each(item) for item in value)

    return Kind(read=_split, check=check)


def _check_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _read_switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


SWITCH = Kind(read=_read_switch, check=_check_switch)
