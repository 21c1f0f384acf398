"""Stands in front of the emulator and does to calls what Amazon, or the network, now and then does.

It also cancels what overlaps, as DynamoDB documents and no emulator does: a transaction that touches an item which
another one is just writing.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, cast
from urllib.parse import urlsplit

from botocore.exceptions import ReadTimeoutError

from linkwatch_pipeline_tests.cloud.calls import Answer, Call, Fault, Plan, Service, no_fault, refusal
from linkwatch_pipeline_tests.cloud.ministack import Cloud

_LONGEST_SILENCE_SECONDS = 100.0
# Of a request: who asks hears it when told that no answer will come. Of the answer: that none will.
_HEARS, _SILENCE = "x-hears-silence", "x-no-answer-will-come"


@dataclass
class FaultProxy:
    """A running proxy.

    `plan` says what happens to each call. `hold` is how many seconds a write is kept while others that touch its items
    are cancelled; None lets everything through at once.
    """

    cloud: Cloud
    plan: Plan = no_fault
    hold: float | None = None
    calls: list[Call] = field(default_factory=list)
    conflicts: int = 0
    _lock: Lock = field(default_factory=Lock)
    _in_flight: list[Call] = field(default_factory=list)
    _closed: Event = field(default_factory=Event)

    def begin(self, plan: Plan = no_fault) -> None:
        """Count calls anew, and do this to them."""
        with self._lock:
            self.calls = []
            self.plan = plan

    def take(self, operation: str, body: Mapping[str, Any], service: str) -> tuple[Call, Fault | None]:
        """Note a call; what is to happen to it."""
        with self._lock:
            call = Call(len(self.calls), operation, body, service)
            self.calls.append(call)
            return call, self.plan(call)

    @contextmanager
    def writing(self, call: Call) -> Iterator[bool]:
        """Whether the call may be carried out: not if it and one that is just going on are in each other's way."""
        if self.hold is None or not call.written_keys:
            yield True
            return
        with self._lock:
            free = not any(_collide(call, other) for other in self._in_flight)
            self.conflicts += not free
            if free:
                self._in_flight.append(call)
        try:
            if free:
                self._closed.wait(self.hold)
            yield free
        finally:
            if free:
                with self._lock:
                    self._in_flight.remove(call)

    def close(self) -> None:
        self._closed.set()


@contextmanager
def fault_proxy(cloud: Cloud) -> Iterator[FaultProxy]:
    """A proxy in front of an emulator; `proxy.cloud` is what clients use."""
    address = urlsplit(cloud.endpoint_url)

    def forward(path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=100)
        try:
            kept = {name: value for name, value in headers.items() if name.lower() != "host"}
            connection.request("POST", path, body, kept)
            response = connection.getresponse()
            return Answer(response.status, response.read(), _for_the_client(response.getheaders()))
        finally:
            connection.close()

    with serving(forward) as proxy:
        proxy.cloud = replace(cloud, endpoint_url=proxy.cloud.endpoint_url)
        yield proxy


@contextmanager
def serving(service: Service) -> Iterator[FaultProxy]:
    """A server on loopback for a service in this process, which does to calls what it is told."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.service = service
    proxy = server.proxy = FaultProxy(Cloud(endpoint_url=f"http://127.0.0.1:{server.server_port}"))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        server.shutdown()
        server.server_close()
        thread.join()


def hears_silence(client: Any) -> Any:
    """The client, giving up a call as after its read timeout when the proxy says that no answer will come.

    So it may wait for all other answers as long as it takes: a stall of this machine is no silence. Without this a
    client waits in earnest.
    """
    client._endpoint.http_session = _Hearing(client._endpoint.http_session)
    return client


class _Hearing:
    """A client's session."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def send(self, request: Any) -> Any:
        request.headers[_HEARS] = "1"
        response = self._session.send(request)
        if _SILENCE in response.headers:
            raise ReadTimeoutError(endpoint_url=request.url)
        return response

    def close(self) -> None:
        self._session.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: FaultProxy
    service: Service


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two would wait for each other's acknowledgement

    def do_POST(self) -> None:
        server = cast(_Server, self.server)
        proxy = server.proxy
        headers = dict(self.headers.items())
        body = self.rfile.read(int(headers["Content-Length"]))
        call, fault = proxy.take(*_asked(headers.get("X-Amz-Target", self.path), body))
        if fault in (Fault.CUT_BEFORE, Fault.SILENT_BEFORE):
            self._leave(fault)
        elif fault in (Fault.THROTTLED, Fault.SERVER_ERROR, Fault.CONFLICT):
            self._answer(refusal(fault, call))
        else:
            with proxy.writing(call) as free:
                answer = server.service(self.path, headers, body) if free else refusal(Fault.CONFLICT, call)
            if fault is not None:
                self._leave(fault)
            else:
                self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def _leave(self, fault: Fault) -> None:
        silent = fault in (Fault.SILENT_BEFORE, Fault.SILENT_AFTER)
        if silent and _HEARS in self.headers:
            self._answer(Answer(200, b"", {_SILENCE: "1"}))
            return
        self.close_connection = True
        if silent:
            self.connection.settimeout(_LONGEST_SILENCE_SECONDS)
            with suppress(OSError):
                self.rfile.read(1)  # whoever waits for the answer gives up and goes

    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at `calls`."""


def _asked(target: str, body: bytes) -> tuple[str, Mapping[str, Any], str]:
    """Operation, content and service. The target is `DynamoDB_20120810.GetItem`, or a path of another language."""
    service, _, operation = target.rpartition("." if "/" not in target else "/")
    return operation, _content(body), "DynamoDB" if service.startswith("DynamoDB_") else service


def _for_the_client(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    own = ("connection", "content-length", "date", "keep-alive", "server", "transfer-encoding")
    return {name: value for name, value in headers if name.lower() not in own}


def _content(body: bytes) -> Mapping[str, Any]:
    """What a request says in JSON; some services speak other languages."""
    try:
        content: Mapping[str, Any] = json.loads(body)
    except ValueError:
        return {}
    return content


def _collide(one: Call, other: Call) -> bool:
    """Two single writes queue up; where a transaction is involved, the later one is refused."""
    transactions = "TransactWriteItems" in (one.operation, other.operation)
    return transactions and not one.written_keys.isdisjoint(other.written_keys)
