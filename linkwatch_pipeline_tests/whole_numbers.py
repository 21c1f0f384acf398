"""Numbers among the arguments of what is played here by hand."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """A `type` for argparse, which refuses what is out of range with exit code 2."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", text) or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest:,} to {highest:,}")
        return int(text)

    return read
