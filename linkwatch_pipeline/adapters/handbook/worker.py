"""A process of its own that parses: what hangs or eats memory there is ended without harm to the rest.

`Worker` is the side of the scan; run as a module, this file is the other side.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType

import linkwatch_pipeline
from linkwatch_pipeline.adapters.handbook.extract import Extracted, extract_links

MAX_MEMORY_BYTES = 1024**3
# docutils calls itself once per URL of a paragraph. If the stack ends sooner, only this process does.
_RECURSION_LIMIT = 5_000
_ROOT = Path(linkwatch_pipeline.__file__).parent.parent


class TookTooLong(Exception):
    """The worker did not answer in time; it was ended."""


class WorkerDied(Exception):
    """The worker ended without an answer."""


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

    def extract(self, question: Extract, *, deadline: timedelta) -> Extracted:
        """Raises TookTooLong, WorkerDied."""
        answer: Extracted = self._ask(question, deadline)
        return answer

    def match(self, question: Match, *, deadline: timedelta) -> list[bool]:
        """Raises TookTooLong, WorkerDied."""
        answer: list[bool] = self._ask(question, deadline)
        return answer

    def _ask(self, question: Extract | Match, deadline: timedelta):  # type: ignore[no-untyped-def]
        if self._connection is None:
            self._connection = self._start()
        try:
            self._connection.send(question)
            if self._connection.poll(deadline.total_seconds()):
                return self._connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise WorkerDied from error
        self.close()
        raise TookTooLong

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        # -P: nothing that lies in the current folder, which may be the handbook, is ever imported.
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH")) if part)
        self._process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        return ours

    def close(self) -> None:
        """End the process, whatever it is doing."""
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


def serve(connection: Connection) -> None:
    """Answer questions until nobody asks any more."""
    with suppress(EOFError, OSError):
        while True:
            connection.send(_answer(connection.recv()))


def _answer(question: Extract | Match) -> Extracted | list[bool]:
    if isinstance(question, Match):
        search = re.compile(question.pattern).search
        return [search(text) is not None for text in question.texts]
    try:
        return extract_links(question.path, question.kind)
    except MemoryError:
        return Extracted(problem="needs too much memory to be read")


def _bound_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = MAX_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MAX_MEMORY_BYTES)
    with suppress(OSError, ValueError):  # a system that cannot bound it still has the deadline
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


if __name__ == "__main__":
    _bound_memory()
    sys.setrecursionlimit(_RECURSION_LIMIT)
    serve(Connection(int(sys.argv[1])))
