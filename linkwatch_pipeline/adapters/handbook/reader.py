"""Reads a handbook: every file of a scanned kind under the given PATHs, each parsed within bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue

from linkwatch_pipeline.adapters.handbook.extract import Extracted
from linkwatch_pipeline.adapters.handbook.walk import Candidate, walk
from linkwatch_pipeline.adapters.handbook.worker import Extract, Match, OutOfMemory, TookTooLong, Worker, WorkerDied
from linkwatch_pipeline.domain.errors import InvalidInput, MissingExtra
from linkwatch_pipeline.domain.handbook import ReadFile

FILE_DEADLINE = timedelta(seconds=20)
MATCH_DEADLINE = timedelta(seconds=5)
_MAX_WORKERS = 4
_FILES_PER_WORKER = 8  # fewer are read before a second process has started
_PROBLEMS: dict[type[Exception], str] = {
    OutOfMemory: "needs too much memory to be read",
    WorkerDied: "made the process that read it end",
}
_LIBRARIES = ("docutils", "markdown_it")


class HandbookReader:
    """`use_cases.scan.Reader` over folders and files of this machine.

    Args:
        file_deadline: how long one file may take.
        match_deadline: how long `include` or `exclude` may take over all paths.
    """

    def __init__(self, *, file_deadline: timedelta = FILE_DEADLINE, match_deadline: timedelta = MATCH_DEADLINE) -> None:
        self._file_deadline = file_deadline
        self._match_deadline = match_deadline

    def read(self, paths: Sequence[Path], *, include: str | None, exclude: str | None) -> Iterator[ReadFile]:
        """The files in the order of the PATHs, sorted within each; see `use_cases.scan.Reader`."""
        for library in _LIBRARIES:
            if find_spec(library) is None:
                raise MissingExtra("scan", "reading a handbook")
        for path in paths:
            if not os.path.lexists(path):
                raise InvalidInput("PATH", f"there is no {str(path)!r}", "Name a file or a folder.")
        _check_pattern("include", include)
        _check_pattern("exclude", exclude)
        candidates = _named(paths)
        for field, pattern, wanted in (("include", include, True), ("exclude", exclude, False)):
            if pattern is not None:
                found = self._matches(field, pattern, [under for under, _ in candidates])
                candidates = [entry for entry, hit in zip(candidates, found, strict=True) if hit is wanted]
        yield from self._read([candidate for _, candidate in candidates])

    def _matches(self, field: str, pattern: str, texts: Sequence[str]) -> list[bool]:
        """Matching has no bound of its own, so it runs where it can be ended."""
        with Worker() as worker:
            try:
                return worker.match(Match(pattern=pattern, texts=tuple(texts)), deadline=self._match_deadline)
            except TookTooLong:
                raise InvalidInput(
                    field, f"{pattern[:80]!r} takes too long to match", "Write it without repetitions in repetitions."
                ) from None

    def _read(self, candidates: Sequence[Candidate]) -> Iterator[ReadFile]:
        to_parse = sum(1 for candidate in candidates if candidate.kind)
        count = max(1, min(_MAX_WORKERS, os.cpu_count() or 1, to_parse // _FILES_PER_WORKER))
        with ExitStack() as stack:
            idle: SimpleQueue[Worker] = SimpleQueue()
            for _ in range(count):
                idle.put(stack.enter_context(Worker()))
            threads = stack.enter_context(ThreadPoolExecutor(count))
            yield from threads.map(lambda candidate: self._read_one(candidate, idle), candidates)

    def _read_one(self, candidate: Candidate, idle: SimpleQueue[Worker]) -> ReadFile:
        read = ReadFile(file=candidate.file, problem=candidate.problem, passed=candidate.passed)
        if not candidate.kind:
            return read
        worker = idle.get()
        try:
            extracted = self._extract(worker, Extract(path=candidate.path, kind=candidate.kind))
        finally:
            idle.put(worker)
        return replace(read, links=extracted.links, problem=extracted.problem)

    def _extract(self, worker: Worker, question: Extract) -> Extracted:
        """A file is blamed for what only a process that read nothing before could not do either."""
        while True:
            fresh = worker.is_fresh
            try:
                return worker.extract(question, deadline=self._file_deadline)
            except TookTooLong:
                return Extracted(problem=f"takes more than {self._file_deadline.total_seconds():g} s to read")
            except (OutOfMemory, WorkerDied) as error:
                if fresh:
                    return Extracted(problem=_PROBLEMS[type(error)])


def _check_pattern(field: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(
            field,
            f"{(pattern or '')[:80]!r} is not a regular expression: {error}",
            "Write one as Python's re takes it.",
        ) from None


def _named(paths: Sequence[Path]) -> list[tuple[str, Candidate]]:
    """(path under its PATH, candidate), each file once. With several PATHs a file's name begins with its PATH."""
    named: dict[str, tuple[str, Candidate]] = {}
    for path in paths:
        for candidate in walk(path):
            under = candidate.file
            if len(paths) > 1:
                whole = f"{path.as_posix()}/{under}" if path.is_dir() else path.as_posix()
                candidate = replace(candidate, file=os.fsencode(whole).decode("utf-8", "backslashreplace"))
            named.setdefault(os.path.abspath(candidate.path), (under, candidate))
    return list(named.values())
