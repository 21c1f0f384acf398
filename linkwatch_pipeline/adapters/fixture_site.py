"""The local fixture site: one loopback server whose every page answers as a small JSON file says (SPEC 14).

The file is read anew for each request, so whoever edits it sees the change with the next check.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.json_text import read_json

logger = logging.getLogger(__name__)

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
LONGEST_DELAY = 5.0  # seconds
_PAUSE_STATUSES = (429, 503)
_WITHOUT_BODY = (204, 304)


@dataclass(frozen=True, slots=True)
class FixtureState:
    """How the fixture answers. `retry_after` is sent with 429 and 503 only; `delay_seconds` is clamped to 0-5."""

    status: int = 200
    body: str = "guide-v1: learning resource"
    content_type: str = "text/plain"
    retry_after: int | str = 30
    delay_seconds: float = 0

    @classmethod
    def from_json(cls, text: str) -> FixtureState:
        """Read a state; missing keys have their defaults. Raises ValueError."""
        read = read_json(text)
        if not isinstance(read, dict):
            raise ValueError("it is not a JSON object")
        known = asdict(cls())
        unknown = ", ".join(repr(name) for name in read if name not in known)
        if unknown:
            raise ValueError(f"it has no {unknown}; there are {', '.join(known)}")
        state = cls(**read)
        state._check()
        return state

    def _check(self) -> None:
        if not _is_number(self.status, int) or not 200 <= self.status <= 599:
            raise ValueError(f"status must be a whole number from 200 to 599, not {self.status!r}")
        if not isinstance(self.body, str):
            raise ValueError(f"body must be text, not {self.body!r}")
        if not _is_number(self.delay_seconds, int | float) or not math.isfinite(self.delay_seconds):
            raise ValueError(f"delay_seconds must be a number, not {self.delay_seconds!r}")
        retry_after = str(self.retry_after) if _is_number(self.retry_after, int) else self.retry_after
        for name, value in (("content_type", self.content_type), ("retry_after", retry_after)):
            if not isinstance(value, str) or not value.isascii() or not value.isprintable():
                raise ValueError(f"{name} must be printable ASCII text, not {value!r}")

    @property
    def delay(self) -> float:
        """Seconds to wait before answering."""
        return min(max(self.delay_seconds, 0.0), LONGEST_DELAY)


class FixtureSite:
    """A site for demonstrations and lessons, on loopback.

    Args:
        port: 0 takes a free one.
        state_file: where the state stands; None keeps it in memory. A file that is not there yet means the defaults.
    Raises: ConfigurationError if the address cannot be had.
    """

    def __init__(self, host: str = DEFAULT_HOST, port: int = DEFAULT_PORT, state_file: Path | None = None) -> None:
        self._state_file = state_file
        self._in_memory = FixtureState()
        self._closing = threading.Event()
        try:
            self._server = _Server((host, port), _handler_for(self))
        except (OSError, OverflowError) as exc:
            raise ConfigurationError(_why_not(host, port, exc)) from exc
        self.host, self.port = host, int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address of its front page."""
        return f"http://{self.host}:{self.port}/"

    def state(self) -> FixtureState:
        """The state as it is now. Raises ValueError if the file cannot be used."""
        if self._state_file is None:
            return self._in_memory
        try:
            return FixtureState.from_json(self._state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return FixtureState()
        except OSError as exc:
            raise ValueError(str(exc)) from exc

    def set(self, **state: Any) -> None:
        """Answer so from now on; what is not named has its default. Raises ValueError."""
        text = json.dumps(state)
        self._in_memory = FixtureState.from_json(text)
        if self._state_file is not None:
            fresh = self._state_file.with_name(self._state_file.name + ".new")
            fresh.write_text(text + "\n", encoding="utf-8")
            fresh.replace(self._state_file)  # a request never reads half of it

    def serve_forever(self) -> None:
        """Serve until interrupted."""
        try:
            self._server.serve_forever(poll_interval=0.05)
        finally:
            self.close()

    @contextmanager
    def running(self) -> Iterator[FixtureSite]:
        """Serve from a thread of its own meanwhile."""
        thread = threading.Thread(target=self.serve_forever, name="fixture-site", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._closing.set()
            self._server.shutdown()
            thread.join()

    def close(self) -> None:
        """Give the address back, and end delays."""
        self._closing.set()
        self._server.server_close()

    def wait(self, seconds: float) -> None:
        """Let a delay pass, unless the site closes."""
        self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # http.server would ask the resolver for this machine's name here.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


def _handler_for(site: FixtureSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "linkwatch-fixture"
        sys_version = ""
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.close_connection = True
            try:
                state = site.state()
            except ValueError as exc:
                state = FixtureState(status=500, body=f"The fixture's state file cannot be used: {exc}\n")
            site.wait(state.delay)
            try:
                self._send(state)
            except OSError:  # the visitor did not wait
                return

        do_HEAD = do_GET  # noqa: N815 - the names are http.server's

        def _send(self, state: FixtureState) -> None:
            body = b"" if state.status in _WITHOUT_BODY else state.body.encode("utf-8", "replace")
            self.send_response(state.status)
            self.send_header("Content-Type", state.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            if state.status in _PAUSE_STATUSES:
                self.send_header("Retry-After", str(state.retry_after))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            logger.debug("fixture answered", extra={"action": "fixture", "answer": format % args})

    return Handler


def _why_not(host: str, port: int, exc: OSError | OverflowError) -> str:
    if isinstance(exc, OSError) and exc.errno == errno.EADDRINUSE:
        return (
            f"{host}:{port} is taken by another program: stop it (perhaps a demo or a fixture that still runs), "
            "or give 'linkwatch fixture' another port with --port"
        )
    return f"the fixture cannot listen on {host}:{port} ({exc}): choose a loopback address and a free port"


def _is_number(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
