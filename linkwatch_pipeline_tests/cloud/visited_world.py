"""A world in this process for functions to visit: its log is whole when they have answered, and it holds answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linkwatch_pipeline_tests.world import Answer, Request, Site, World
from linkwatch_pipeline_tests.world.scripts import Script


class HeldPage:
    """Answers 404, and only when it is let go, to all who wait then."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def wait_for_visitor(self) -> None:
        """Until one more has come."""
        self._arrived.acquire()

    def let_go(self) -> None:
        while self._waiting:
            loop, answer = self._waiting.pop()
            loop.call_soon_threadsafe(answer.set)

    async def __call__(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), answer))
        self._arrived.release()
        await answer.wait()
        writer.write(Answer(status=404).to_bytes())
        await writer.drain()


@dataclass(frozen=True)
class VisitedWorld:
    """`map_file` is how the functions find it."""

    world: World
    map_file: Path

    @property
    def visits(self) -> int:
        """How many there were; all that anybody has the answer of are among them."""
        asyncio.run(self.world.settle())
        return len(self.world.log.hits)


@contextmanager
def visited_world(sites: Mapping[str, Site | Mapping[str, Script]], folder: Path) -> Iterator[VisitedWorld]:
    """The world until the block ends, and its map in a folder."""
    with World(sites).in_thread() as world:
        map_file = folder / "map.json"
        map_file.write_text(world.map.to_json())
        yield VisitedWorld(world, map_file)
