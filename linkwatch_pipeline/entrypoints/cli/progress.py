"""What people see while a run goes on: one line that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import click

from linkwatch_pipeline.domain.runs import JobRecord
from linkwatch_pipeline.entrypoints.cli.output import note

_STEPS = 10  # lines per run where there is no terminal


class ProgressLine:
    """`ports.Progress` on stderr. Args: expected: how many jobs a run has, by run id."""

    def __init__(self, expected: Callable[[str], int]) -> None:
        self._expected = expected
        self._moves = sys.stderr is not None and sys.stderr.isatty()
        self._run_id: str | None = None
        self._ends: Counter[str] = Counter()
        self._total = 0
        self._shown_steps = 0
        self._noted: str | None = None

    def job_ended(self, job: JobRecord, end: str) -> None:
        if job.run_id != self._run_id:
            self._begin(job.run_id)
        self._ends[end] += 1
        done = self._ends.total()
        step = done * _STEPS // max(self._total, 1)
        if self._moves:
            click.echo(f"\r{self._line(done)}\x1b[K", nl=done == self._total, err=True)
        elif step > self._shown_steps:
            self._shown_steps = step
            note(self._line(done))

    def note(self, text: str) -> None:
        """Several steps that follow one run find the same at its end: it is said once."""
        if text != self._noted:
            note(text)
        self._noted = text

    def _begin(self, run_id: str) -> None:
        self._run_id, self._total = run_id, self._expected(run_id)
        self._ends.clear()
        self._shown_steps = 0

    def _line(self, done: int) -> str:
        ends = ", ".join(f"{end} {count}" for end, count in self._ends.most_common())
        return f"{self._run_id}  {done}/{self._total}  {ends}"
