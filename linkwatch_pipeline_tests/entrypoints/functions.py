"""The Lambda functions called in this process as Lambda calls them, on an emulated table, queue and metrics."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from inspect import unwrap
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.queue.messages import write_message
from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.entrypoints import aws_lambda
from linkwatch_pipeline.ports import Clock
from linkwatch_pipeline_tests.cloud import loopback_world
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table
from linkwatch_pipeline_tests.cloud.timed_sqs import make_queues

# What the template gives each function.
LIVES_MS = {"dispatch": 900_000, "check": 30_000, "notify": 300_000, "health": 60_000, "mail_events": 60_000}


@dataclass
class LambdaContext:
    """What a function is told about its call. `remaining_ms` None is all of its own time."""

    aws_request_id: str = "request-1"
    remaining_ms: int | None = None
    function: str = "check"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms if self.remaining_ms is not None else LIVES_MS[self.function]


@dataclass
class MovedClock:
    """Another clock, the machine's by default, but for an offset that a test moves on."""

    offset: timedelta = timedelta(0)
    base: Clock = field(default_factory=SystemClock)

    def now(self) -> datetime:
        return self.base.now() + self.offset

    def monotonic(self) -> float:
        return self.base.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        await self.base.sleep(duration)


@dataclass
class Functions:
    """A table, queues, and the functions on them. `lines` are what they logged; `clock` is what they go by."""

    cloud: Cloud
    table: str
    queue_url: str
    dead_letter_url: str
    namespace: str
    log: io.StringIO
    sqs: Any
    module: ModuleType
    clock: MovedClock
    context: LambdaContext = field(default_factory=LambdaContext)

    def call(self, handler: str, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the function answers, as Lambda would pass it on: as JSON."""
        function: Callable[..., Any] = getattr(self.module, handler)
        answer: dict[str, Any] = json.loads(json.dumps(function(event or {}, replace(self.context, function=handler))))
        return answer

    def app(self) -> App:
        """The parts that the functions are made of."""
        parts: App = self.module.app()
        return parts

    def new_process(self) -> None:
        """The functions' process died: what it remembered is gone."""
        self.module.app.cache_clear()
        aws_lambda.surveyor.cache_clear()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def waiting(self) -> list[dict[str, Any]]:
        """SQS records of the messages that are visible, as the event source mapping makes them."""
        answer = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        return [
            {"messageId": message["MessageId"], "receiptHandle": message["ReceiptHandle"], "body": message["Body"]}
            for message in answer.get("Messages", ())
        ]

    def depth(self, url: str, name: str = "ApproximateNumberOfMessages") -> int:
        """How many messages of a queue are visible, without another name: what the alarm on dead letters looks at."""
        return int(self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])

    def hide_messages_for(self, seconds: int) -> None:
        """How long a message that was received is hidden from now on."""
        self.sqs.set_queue_attributes(QueueUrl=self.queue_url, Attributes={"VisibilityTimeout": str(seconds)})

    def record_of(self, job: CheckJob) -> dict[str, Any]:
        return {"messageId": f"m-{job.link_id}", "receiptHandle": "h", "body": write_message(job)}

    def acknowledge(self, records: list[dict[str, Any]], answer: dict[str, Any]) -> None:
        """Delete what the function did not report, as the mapping does."""
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        for record in records:
            if record["messageId"] not in failed:
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=record["receiptHandle"])


class OnMap(Protocol):
    """A world that another process could visit too."""

    @property
    def map_file(self) -> Path: ...


@contextmanager
def functions_on(
    cloud: Cloud, world: OnMap | None = None, time: Clock | None = None, /, **settings: str
) -> Iterator[Functions]:
    """Functions with an environment, and clients and a log of their own, until the block ends.

    Args:
        world: what they visit; nothing can be visited without one.
        time: what their clock goes by; None for the machine's.
    """
    sqs = cloud.client("sqs")
    table, namespace = make_table(cloud), f"linkwatch-{uuid4().hex}"
    queue_url, dead = make_queues(sqs, f"work-{uuid4().hex}")
    env = {
        "LINKWATCH_PROFILE": "aws",
        "LINKWATCH_CONTACT": "links@example.com",
        "LINKWATCH_TABLE": table,
        "LINKWATCH_QUEUE_URL": queue_url,
        "LINKWATCH_DEAD_LETTER_QUEUE_URL": dead,
        "LINKWATCH_METRICS_NAMESPACE": namespace,
        "LINKWATCH_ALLOW_ENDPOINT": "true",
        **({"LOOPBACK_WORLD": str(world.map_file)} if world is not None else {}),
    }
    log, clock = io.StringIO(), MovedClock(base=time or SystemClock())
    with pytest.MonkeyPatch.context() as patch, _fresh_process(log):
        for name, value in {**cloud.env, **env, **settings}.items():
            patch.setenv(name, value)
        patch.setattr(aws_lambda, "app", aws_lambda.app)  # the world's handlers set another one
        module = loopback_world if world is not None else aws_lambda
        patch.setattr(module, "app", _going_by(clock, module.app))
        yield Functions(cloud, table, queue_url, dead, namespace, log, sqs, module, clock)


def _going_by(clock: MovedClock, build: Callable[[], App]) -> Callable[[], App]:
    @cache
    def app() -> App:
        return replace(unwrap(build)(), clock=clock)

    return app


@contextmanager
def _fresh_process(log: io.StringIO) -> Iterator[None]:
    """What a process remembers is forgotten before and after, and the root logger is as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    remembered = (aws_lambda.app, aws_lambda.logs, aws_lambda.surveyor, loopback_world.app)
    for each in remembered:
        each.cache_clear()
    with redirect_stdout(log):
        aws_lambda.logs()
    try:
        yield
    finally:
        for app in (aws_lambda.app, loopback_world.app):
            if app.cache_info().currsize:
                app().close()
        for each in remembered:
            each.cache_clear()
        root.handlers[:] = handlers
        root.setLevel(level)
