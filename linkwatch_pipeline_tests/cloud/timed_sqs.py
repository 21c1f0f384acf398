"""ministack's SQS on loopback with a clock that a test turns: delays and visibility timeouts pass without waiting.

Real boto3 calls over real HTTP reach the emulator's own code; only the time that it reads is another. Long polls would
wait for a clock that stands still, so whoever uses it asks without waiting.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import pytest

from linkwatch_pipeline_tests.virtual_clock import VirtualClock


class _TurnedTime:
    """Stands for the module `time` in the emulator."""

    def __init__(self) -> None:
        self.clock = VirtualClock()

    def time(self) -> float:
        return self.clock.now().timestamp()


class TimedSqs:
    """The emulated service: `endpoint_url`, and `clock`, which a new test replaces by a new one."""

    def __init__(self, endpoint_url: str, time: _TurnedTime) -> None:
        self.endpoint_url = endpoint_url
        self._time = time

    def new_clock(self) -> VirtualClock:
        """From now on the emulator's time is this clock's."""
        self._time.clock = VirtualClock()
        return self._time.clock

    @cached_property
    def client(self) -> Any:
        import boto3

        session = boto3.session.Session("testing", "testing", region_name="us-east-1")
        return session.client("sqs", endpoint_url=self.endpoint_url)


@pytest.fixture(scope="session")
def timed_sqs() -> Iterator[TimedSqs]:
    with running_timed_sqs() as sqs:
        yield sqs


@contextmanager
def running_timed_sqs() -> Iterator[TimedSqs]:
    """Serve until the block ends. The emulator's code is loaded into this process."""
    from ministack.services import sqs

    time, lock = _TurnedTime(), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: two would wait for each other's acknowledgement

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                status, answered, content = asyncio.run(sqs.handle_request("POST", self.path, headers, body, {}))
            self.send_response(status)
            for name, value in {**answered, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with pytest.MonkeyPatch.context() as patched, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        patched.setattr(sqs, "time", time)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield TimedSqs(f"http://127.0.0.1:{server.server_port}", time)
        finally:
            server.shutdown()
            thread.join()


def make_queues(client: Any, name: str, *, visibility_seconds: int = 180, max_receives: int = 5) -> tuple[str, str]:
    """A work queue and its dead-letter queue, as `deploy/` has them; their URLs."""
    dead = client.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": str(max_receives)}
    attributes = {"VisibilityTimeout": str(visibility_seconds), "RedrivePolicy": json.dumps(redrive)}
    return client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"], dead
