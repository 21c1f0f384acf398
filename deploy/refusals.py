"""What a deployment says to the person as it is, and the exit code that goes with it."""

from __future__ import annotations

import sys


class Refused(Exception):
    """Wrong usage or configuration; nothing was made. Exit code 2."""


class NotFine(Exception):
    """What was asked for did not come about, or is not there. Exit code 1."""


def say(text: str) -> None:
    """For the person, apart from what a program may read."""
    print(text, file=sys.stderr)
