"""Stands in front of the emulator and does to calls what Amazon, or the network, now and then does.

It also cancels what overlaps, as DynamoDB documents and no emulator does: a transaction that touches an item which
another one is just writing.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, cast
from urllib.parse import urlsplit

from linkwatch_pipeline_tests.cloud.ministack import Cloud

_JSON = "application/x-amz-json-1.0"
_ERROR_TYPE = "com.amazonaws.dynamodb.v20120810#"


class Fault(StrEnum):
    """What happens to one call."""

    THROTTLED = "throttled"
    SERVER_ERROR = "server error"
    CONFLICT = "conflict"  # as DynamoDB says it: of a transaction, or of a single write that met one
    CUT_BEFORE = "cut before the effect"
    CUT_AFTER = "cut after the effect"
    SILENT_BEFORE = "no answer, no effect"
    SILENT_AFTER = "no answer after the effect"


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a service of AWS: the how many-eth since the proxy began or was told to count anew, from 0."""

    number: int
    operation: str
    body: Mapping[str, Any]
    service: str = "DynamoDB"

    @property
    def written_keys(self) -> frozenset[tuple[str, str]]:
        """The items that it writes, or insists on."""
        if self.operation == "TransactWriteItems":
            actions = (action for item in self.body["TransactItems"] for action in item.values())
            return frozenset(_key(action.get("Item") or action["Key"]) for action in actions)
        if self.operation in ("PutItem", "UpdateItem", "DeleteItem"):
            return frozenset([_key(self.body.get("Item") or self.body["Key"])])
        return frozenset()


Plan = Callable[[Call], Fault | None]


def no_fault(call: Call) -> Fault | None:
    return None


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

    def be_silent(self) -> None:
        """Keep a connection open and say nothing, until everybody has gone."""
        self._closed.wait(30)

    def close(self) -> None:
        self._closed.set()


@contextmanager
def fault_proxy(cloud: Cloud) -> Iterator[FaultProxy]:
    """A proxy in front of an emulator; `proxy.cloud` is what clients use."""
    address = urlsplit(cloud.endpoint_url)

    class Handler(_Handler):
        target = (address.hostname or "", address.port or 0)

    server = _Server(("127.0.0.1", 0), Handler)
    proxy = server.proxy = FaultProxy(replace(cloud, endpoint_url=f"http://127.0.0.1:{server.server_port}"))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: FaultProxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two would wait for each other's acknowledgement
    target = ("", 0)

    def do_POST(self) -> None:
        proxy = cast(_Server, self.server).proxy
        body = self.rfile.read(int(self.headers["Content-Length"]))
        target = self.headers.get("X-Amz-Target", self.path)
        service = "DynamoDB" if target.startswith("DynamoDB_") else target.partition(".")[0]
        call, fault = proxy.take(target.rpartition(".")[2].rpartition("/")[2], _content(body), service)
        if fault in (Fault.CUT_BEFORE, Fault.SILENT_BEFORE):
            self._leave(fault, proxy)
        elif fault in (Fault.THROTTLED, Fault.SERVER_ERROR, Fault.CONFLICT):
            self._answer(*_refusal(fault, call))
        else:
            with proxy.writing(call) as free:
                answer = self._forward(body) if free else _refusal(Fault.CONFLICT, call)
            if fault is not None:
                self._leave(fault, proxy)
            else:
                self._answer(*answer)

    def _forward(self, body: bytes) -> tuple[int, bytes, str]:
        connection = http.client.HTTPConnection(*self.target, timeout=30)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request("POST", self.path, body, headers)
            response = connection.getresponse()
            return response.status, response.read(), response.getheader("Content-Type", _JSON)
        finally:
            connection.close()

    def _answer(self, status: int, body: bytes, kind: str = _JSON) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _leave(self, fault: Fault, proxy: FaultProxy) -> None:
        if fault in (Fault.SILENT_BEFORE, Fault.SILENT_AFTER):
            proxy.be_silent()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at `calls`."""


def _content(body: bytes) -> Mapping[str, Any]:
    """What a request says in JSON; some services speak other languages."""
    try:
        content: Mapping[str, Any] = json.loads(body)
    except ValueError:
        return {}
    return content


def _refusal(fault: Fault, call: Call) -> tuple[int, bytes]:
    if fault is Fault.SERVER_ERROR:
        return 500, _error("InternalServerError", "injected")
    if fault is Fault.CONFLICT and call.operation == "TransactWriteItems":
        items: Sequence[Any] = call.body["TransactItems"]
        reasons = [{"Code": "TransactionConflict", "Message": "injected"}, *[{"Code": "None"}] * (len(items) - 1)]
        return 400, _error("TransactionCanceledException", "Transaction cancelled", CancellationReasons=reasons)
    if fault is Fault.CONFLICT and call.written_keys:
        return 400, _error("TransactionConflictException", "injected")
    if call.service != "DynamoDB":
        return 400, _error("ThrottlingException", "injected")
    return 400, _error("ProvisionedThroughputExceededException", "injected")


def _error(code: str, message: str, **further: Any) -> bytes:
    return json.dumps({"__type": _ERROR_TYPE + code, "message": message, "Message": message, **further}).encode()


def _collide(one: Call, other: Call) -> bool:
    """Two single writes queue up; where a transaction is involved, the later one is refused."""
    transactions = "TransactWriteItems" in (one.operation, other.operation)
    return transactions and not one.written_keys.isdisjoint(other.written_keys)


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]
