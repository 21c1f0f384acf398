"""What is played by hand ends at Ctrl-C and SIGTERM with a sentence, after it has tidied up."""

from __future__ import annotations

import sys
from collections.abc import Callable

from linkwatch_pipeline.entrypoints.cli.interrupts import sigterm_as_interrupt


def exit_code_of(work: Callable[[], int], *, if_interrupted: str) -> int:
    """What the work returns; 130 if it is interrupted, which `if_interrupted` tells on stderr."""
    try:
        with sigterm_as_interrupt():
            return work()
    except KeyboardInterrupt:
        print(f"interrupted; {if_interrupted}", file=sys.stderr)
        return 130
