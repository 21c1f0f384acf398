"""What is said of a file that cannot be read as a table at all."""

from __future__ import annotations

from linkwatch_pipeline.domain.tables import MAX_ROWS


class BrokenTable(ValueError):
    """Args: line: where, from 1. problem: what is wrong. mend: what to do."""

    def __init__(self, line: int, problem: str, mend: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem
        self.mend = mend


def refuse_row_beyond_bound(rows: int, line: int) -> None:
    """Raise BrokenTable if there are `rows` already and one more begins on this line."""
    if rows >= MAX_ROWS:
        raise BrokenTable(line, f"there are more than {MAX_ROWS} rows", "Split the file.")
