"""Line numbers of places in a text, for callers that go through it from beginning to end."""

from __future__ import annotations

from linkwatch_pipeline.adapters.handbook.templates import SWALLOWED


class LineCounter:
    """Knows the line of an offset, counting on from the offset asked for last; so a whole file costs one pass."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self._text = text
        self._line = first_line
        self._offset = 0

    def line(self, offset: int) -> int:
        """The line that `offset` is on. Offsets may not go back."""
        self._line += lines_between(self._text, self._offset, offset)
        self._offset = offset
        return self._line


def lines_between(text: str, start: int, end: int) -> int:
    """How many lines further `end` is, those inside template tags included."""
    return text.count("\n", start, end) + text.count(SWALLOWED, start, end)
