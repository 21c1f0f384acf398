"""`dagster dev` as a process of its own: started, asked over GraphQL, interrupted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from linkwatch_pipeline.adapters.clock import SystemClock

PAUSE = 0.2  # seconds between looks

T = TypeVar("T")


class DagsterDev:
    """A running `dagster dev`. `output` is where it writes."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, output: Path) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}"
        self._output = output
        self._pause = Event()

    def said(self) -> str:
        return self._output.read_text()

    def ask(self, query: str, **variables: Any) -> Any:
        """The data of a GraphQL answer."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self._url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]

    def until(self, look: Callable[[], T], *, seconds: float) -> T:
        """What `look` sees as soon as it sees anything; OSError counts as nothing yet."""
        clock = SystemClock()
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            with suppress(OSError):
                if seen := look():
                    return seen
            self._pause.wait(PAUSE)
        raise AssertionError(f"nothing within {seconds} s; it said:\n{self.said()}")

    def until_it_serves(self) -> None:
        self.until(lambda: self.ask("{ version }"), seconds=200)

    def interrupt(self) -> int:
        """Ctrl-C; its exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(timeout=120)

    def until_nothing_is_left(self) -> None:
        """Dagster's servers go by themselves, some seconds after their parent."""
        self.until(lambda: not self._processes(), seconds=120)

    def _processes(self) -> set[int]:
        """What lives of its process group."""
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                    if state != "Z" and int(group) == self._process.pid:
                        found.add(int(entry.name))
        return found


@contextmanager
def started(
    command: Sequence[str], port: int, *, cwd: Path, env: Mapping[str, str], output: Path
) -> Iterator[DagsterDev]:
    """Start it in a process group of its own; nothing of that is left afterwards."""
    with output.open("wb") as out:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        yield DagsterDev(process, port, output)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
