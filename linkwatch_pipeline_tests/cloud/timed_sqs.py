"""ministack's SQS on loopback with a clock that a test turns: delays and visibility timeouts pass without waiting.

Real boto3 calls over real HTTP reach the emulator's own code; only the time that it reads is another (`timed_cloud`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest

from linkwatch_pipeline_tests.cloud.fault_proxy import serving
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.timed_cloud import TimedCloud
from linkwatch_pipeline_tests.virtual_clock import VirtualClock


class TimedSqs:
    """The emulated service, served; `timed` is what answers."""

    def __init__(self, cloud: Cloud, timed: TimedCloud) -> None:
        self.cloud = cloud
        self._timed = timed

    def new_clock(self) -> VirtualClock:
        """From now on the emulator's time is this clock's."""
        return self._timed.new_clock()

    @cached_property
    def client(self) -> Any:
        return self.cloud.client("sqs")


@pytest.fixture(scope="session")
def timed_sqs(timed_cloud: TimedCloud) -> Iterator[TimedSqs]:
    with serving(timed_cloud.answer) as server:
        yield TimedSqs(server.cloud, timed_cloud)


def make_queues(client: Any, name: str, *, visibility_seconds: int = 180, max_receives: int = 5) -> tuple[str, str]:
    """A work queue and its dead-letter queue, as `deploy/` has them; their URLs."""
    dead = client.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": str(max_receives)}
    attributes = {"VisibilityTimeout": str(visibility_seconds), "RedrivePolicy": json.dumps(redrive)}
    return client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"], dead
