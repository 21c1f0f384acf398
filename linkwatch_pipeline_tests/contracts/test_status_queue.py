"""What every queue between monitor and processor promises (`ports.StatusQueue`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.status_store.memory_queue import MemoryStatusQueue
from linkwatch_pipeline.adapters.status_store.sqs_queue import SqsStatusQueue
from linkwatch_pipeline.domain.service_status import ServiceCheck, Status, decode_check
from linkwatch_pipeline.ports import StatusQueue
from linkwatch_pipeline_tests.cloud.timed_sqs import TimedSqs
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

VISIBILITY = timedelta(seconds=60)


@dataclass(frozen=True)
class Stage:
    """A queue under test, its time, how its visibility timeout passes, and how many messages were given up."""

    queue: StatusQueue
    now: Callable[[], datetime]
    pass_visibility: Callable[[], None]
    dead: Callable[[], int]


def memory() -> Iterator[Stage]:
    clock, numbers = VirtualClock(datetime(2026, 11, 29, 9, 0, 30, 123_000, tzinfo=UTC)), count(1)
    queue = MemoryStatusQueue(clock, new_id=lambda: f"m{next(numbers)}", visibility=VISIBILITY)
    yield Stage(queue, clock.now, lambda: clock.advance(VISIBILITY), lambda: len(queue.dead_letters()))


def sqs(emulator: TimedSqs) -> Iterator[Stage]:
    clock, client = emulator.new_clock(), emulator.client
    name = f"status-{uuid4().hex[:8]}"
    dead = client.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    attributes = {
        "VisibilityTimeout": str(int(VISIBILITY.total_seconds())),
        "RedrivePolicy": f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "3"}}',
    }
    url = client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def count_dead() -> int:
        SqsStatusQueue(url, client=client, wait_seconds=0).receive()
        wanted = ["ApproximateNumberOfMessages"]
        found = client.get_queue_attributes(QueueUrl=dead, AttributeNames=wanted)["Attributes"]
        return int(found[wanted[0]])

    queue = SqsStatusQueue(url, client=client, wait_seconds=0)
    yield Stage(queue, clock.now, lambda: clock.advance(VISIBILITY), count_dead)


@pytest.fixture(params=["memory", "sqs"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    yield from memory() if request.param == "memory" else sqs(request.getfixturevalue("timed_sqs"))


def check(number: int, *, refused: bool = False) -> ServiceCheck:
    return ServiceCheck(
        service_id=f"s{number}",
        user_id="u1",
        url="https://api.example.com/é",
        status=Status.DOWN,
        latency_ms=10_000.01,
        refused=refused,
    )


def test_what_is_sent_is_received_with_its_id_and_the_time_it_was_sent(stage: Stage) -> None:
    assert stage.queue.send([check(1), check(2, refused=True)]) == []
    received = {decode_check(message.body).service_id: message for message in stage.queue.receive()}
    assert decode_check(received["s1"].body) == check(1)
    assert {name: message.refused for name, message in received.items()} == {"s1": False, "s2": True}
    assert received["s1"].message_id != received["s2"].message_id
    assert received["s1"].sent_at == received["s2"].sent_at == stage.now()
    assert received["s1"].sent_at.tzinfo is UTC


def test_at_most_ten_are_received_together_and_none_when_none_is_there(stage: Stage) -> None:
    for start in (0, 10):
        assert stage.queue.send([check(number) for number in range(start, start + 10)]) == []
    assert 1 <= len(stage.queue.receive()) <= 10
    while stage.queue.receive():
        pass
    assert stage.queue.receive() == []


def test_what_is_acknowledged_does_not_come_back_and_the_rest_does_as_the_same_message(stage: Stage) -> None:
    stage.queue.send([check(1), check(2)])
    done, other = sorted(stage.queue.receive(), key=lambda message: message.body)
    stage.queue.acknowledge([done])
    assert stage.queue.receive() == []
    stage.pass_visibility()
    (again,) = stage.queue.receive()
    assert (again.message_id, again.sent_at, again.body) == (other.message_id, other.sent_at, other.body)
    assert again.receive_count == 2
    stage.queue.acknowledge([])
    stage.queue.acknowledge([again])


def test_after_three_deliveries_a_message_is_given_up(stage: Stage) -> None:
    stage.queue.send([check(1)])
    for _ in range(3):
        assert len(stage.queue.receive()) == 1
        assert stage.dead() == 0
        stage.pass_visibility()
    assert stage.queue.receive() == []
    assert stage.dead() == 1
