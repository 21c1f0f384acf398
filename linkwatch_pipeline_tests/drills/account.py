"""What a drill says while it goes on: its steps, and what was checked after each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Account:
    """A drill's own words, each handed to `tell` at once. A check that fails ends the drill with AssertionError."""

    tell: Callable[[str], object] = print
    checks: int = 0

    def step(self, text: str) -> None:
        self.tell(f"  - {text}")

    def check(self, text: str, shown: object, expected: object) -> None:
        """Compare, and say what was seen."""
        assert shown == expected, f"{text}: {shown!r}, not {expected!r}"
        self.checks += 1
        self.tell(f"      ok: {text}: {shown}")


@dataclass(frozen=True)
class Drill:
    """A fault that is brought about on purpose, in a folder of its own."""

    name: str
    title: str
    play: Callable[[Path, Account], None] = field(repr=False)
