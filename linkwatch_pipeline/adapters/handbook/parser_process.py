"""The process that parses for a `Worker`: bounded in memory, and ended from outside when it takes too long."""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from linkwatch_pipeline.adapters.handbook.extract import Extracted, extract_links
from linkwatch_pipeline.adapters.handbook.worker import Extract, Match

MAX_MEMORY_BYTES = 1024**3
# docutils calls itself once per URL of a paragraph. If the stack ends sooner, only this process does.
RECURSION_LIMIT = 5_000


def serve(connection: Connection) -> None:
    """Answer questions until nobody asks any more: None if the memory does not suffice for an answer."""
    with suppress(EOFError, OSError):
        connection.send(None)  # ready
        while True:
            question = connection.recv()
            try:
                connection.send(_answer(question))
            except MemoryError:
                connection.send(None)


def _answer(question: Extract | Match) -> Extracted | list[bool]:
    if isinstance(question, Match):
        search = re.compile(question.pattern).search
        return [search(text) is not None for text in question.texts]
    return extract_links(question.path, question.kind)


def _bound_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = MAX_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MAX_MEMORY_BYTES)
    with suppress(OSError, ValueError):  # a system that cannot bound it still has the deadline
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


if __name__ == "__main__":
    _bound_memory()
    sys.setrecursionlimit(RECURSION_LIMIT)
    serve(Connection(int(sys.argv[1])))
