"""On-call's webhook on loopback: it takes alarms, or answers as a script says."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import trustme


@dataclass
class OnCallServer:
    """`script` are the statuses to answer first; what was answered with 2xx is in `told`. TLS with an authority.

    With `drips` the headers of an answer never end: a byte comes every 20 ms until the client hangs up.
    """

    script: list[int] = field(default_factory=list)
    drips: bool = False
    authority: trustme.CA | None = None
    told: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    url: str = ""

    @contextmanager
    def running(self) -> Iterator[OnCallServer]:
        """Serve on a free port."""
        served = self

        class Handler(_Handler):
            on_call = served

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            scheme = "http"
            if self.authority is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self.authority.issue_cert("127.0.0.1").configure_cert(context)
                server.socket = context.wrap_socket(server.socket, server_side=True)
                scheme = "https"
            server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that does not trust us
            self.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


class _Handler(BaseHTTPRequestHandler):
    on_call: OnCallServer

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.on_call.calls += 1
        if self.on_call.drips:
            self._drip()
            return
        status = self.on_call.script.pop(0) if self.on_call.script else 200
        if 200 <= status < 300:
            self.on_call.told.append(document)
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nDrip: ")
        with suppress(OSError):
            while not threading.Event().wait(0.02):
                self.wfile.write(b".")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
