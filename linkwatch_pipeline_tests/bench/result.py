"""One number of a benchmark: what was measured, what came out, what it should be."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """`value` is the number itself, `target` what it must not exceed (None: no promise), `detail` how it came about."""

    name: str
    value: float
    unit: str
    target: float | None
    detail: str

    @property
    def is_met(self) -> bool:
        return self.target is None or self.value <= self.target

    def __str__(self) -> str:
        target = "no promise" if self.target is None else f"at most {self.target:g}{self._unit}"
        verdict = "" if self.is_met else "  MISSED"
        return f"{self.name:<58} {self.value:8.3f}{self._unit:<3} ({target}){verdict}\n    {self.detail}"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def machine() -> str:
    """What the numbers were measured on."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
