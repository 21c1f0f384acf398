"""ministack's own SQS, DynamoDB and CloudWatch in this process, with a clock that a test turns.

Delays, visibility timeouts and the lives of idempotency tokens pass without waiting. Long polls would wait for a clock
that stands still, so whoever uses it asks without waiting. A server in front of it is `fault_proxy.serving`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from threading import Event, Lock
from types import ModuleType

import pytest

from linkwatch_pipeline_tests.cloud.calls import Answer
from linkwatch_pipeline_tests.virtual_clock import VirtualClock


class _TurnedTime:
    """Stands for the module `time` in the emulator."""

    def __init__(self) -> None:
        self.clock = VirtualClock()

    def time(self) -> float:
        return self.clock.now().timestamp()

    def sleep(self, seconds: float) -> None:
        """For what the emulator does beside its answers; nobody waits for that."""
        Event().wait(seconds)


class TimedCloud:
    """The emulated services. `clock` is their time, which a new test replaces by a new one."""

    def __init__(self, services: Mapping[str, ModuleType], time: _TurnedTime) -> None:
        self._services = services
        self._time = time
        self._lock = Lock()

    def new_clock(self) -> VirtualClock:
        """From now on the emulator's time is this clock's."""
        self._time.clock = VirtualClock()
        return self._time.clock

    def forget(self) -> None:
        """Forget everything that was made in it."""
        for service in self._services.values():
            service.reset()

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """What the service that is asked answers."""
        target = headers.get("X-Amz-Target", path)
        service = next(service for name, service in self._services.items() if name in target)
        lower = {name.lower(): value for name, value in headers.items()}
        with self._lock:
            status, answered, content = asyncio.run(service.handle_request("POST", path, lower, body, {}))
        return Answer(status, content, dict(answered))


@pytest.fixture(scope="session")
def timed_cloud() -> Iterator[TimedCloud]:
    """One for all tests of a session, since the emulator's code, and its time, are this process's."""
    from ministack.services import cloudwatch, dynamodb, sqs

    time = _TurnedTime()
    services = {"AmazonSQS": sqs, "DynamoDB_": dynamodb, "GraniteServiceVersion": cloudwatch}
    with pytest.MonkeyPatch.context() as patched:
        for service in services.values():
            patched.setattr(service, "time", time)
        yield TimedCloud(services, time)
