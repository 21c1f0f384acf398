"""A process of its own that parses: what hangs or eats memory there is ended without harm to the rest.

This is the side of the scan; `parser_process` is the other side.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType
from typing import Any

import linkwatch_pipeline
from linkwatch_pipeline.adapters.handbook.extract import Extracted

_START_DEADLINE = timedelta(seconds=60)
_PROCESS = "linkwatch_pipeline.adapters.handbook.parser_process"
_ROOT = Path(linkwatch_pipeline.__file__).parent.parent


class TookTooLong(Exception):
    """The worker did not answer in time; it was ended."""


class WorkerDied(Exception):
    """The worker ended without an answer."""


class OutOfMemory(Exception):
    """The question needs more memory than the worker had left; it was ended, since what fills it may stay there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Asks for the links of a file; answered with `Extracted`."""

    path: Path
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Asks which of the texts a regular expression is found in; answered with a list of bool."""

    pattern: str
    texts: tuple[str, ...]


class Worker:
    """One process, started for the first question and again after it had to be ended. Close it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._answers = 0

    @property
    def is_fresh(self) -> bool:
        """Whether the process has answered nothing yet, so that nothing of earlier files fills its memory."""
        return self._answers == 0

    def extract(self, question: Extract, *, deadline: timedelta) -> Extracted:
        """Raises TookTooLong, WorkerDied, OutOfMemory."""
        answer: Extracted = self._ask(question, deadline)
        return answer

    def match(self, question: Match, *, deadline: timedelta) -> list[bool]:
        """Raises TookTooLong, WorkerDied."""
        answer: list[bool] = self._ask(question, deadline)
        return answer

    def _ask(self, question: Extract | Match, deadline: timedelta) -> Any:
        try:
            connection = self._connection if self._connection is not None else self._start()
            connection.send(question)
            if not connection.poll(deadline.total_seconds()):
                raise TookTooLong
            answer = connection.recv()
            if answer is None:
                raise OutOfMemory
            self._answers += 1
            return answer
        except (TookTooLong, WorkerDied, OutOfMemory):
            self.close()
            raise
        except (EOFError, OSError) as error:
            self.close()
            raise WorkerDied from error

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        self._connection = ours
        # -P: nothing that lies in the current folder, which may be the handbook, is ever imported.
        command = [sys.executable, "-P", "-m", _PROCESS, str(theirs.fileno())]
        path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH")) if part)
        self._process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        if not ours.poll(_START_DEADLINE.total_seconds()):
            raise WorkerDied
        ours.recv()  # it is there: from now on, time counts for the question
        return ours

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._answers = 0
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
