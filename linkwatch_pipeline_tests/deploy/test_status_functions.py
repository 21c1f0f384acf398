"""Both zips as functions of the emulator: monitor, queue, mapping and processor, with a bad message among good ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.deploy.test_status import pack
from linkwatch_pipeline_tests.services.team import Team

PATIENCE_SECONDS = 60.0


@pytest.fixture
def functions(team: Team, ministack: Cloud, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The monitor's name and the queue's URL; the mapping to the processor is there, and all of it goes afterwards."""
    name = f"status-{uuid4().hex[:8]}"
    pack(tmp_path)
    with closing(ministack.client("sqs")) as sqs, closing(ministack.client("lambda")) as functions:
        url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "60"})["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        variables = {**ministack.env, **team.env, "SQS_QUEUE_URL": url}
        for function in ("monitor", "processor"):
            functions.create_function(
                FunctionName=f"{name}-{function}",
                Runtime="python3.11",
                Role="arn:aws:iam::000000000000:role/status",
                Handler="lambda_function.lambda_handler",
                Code={"ZipFile": (tmp_path / f"linkwatch-status-{function}.zip").read_bytes()},
                Timeout=60,
                Environment={"Variables": variables},
            )
        sqs.send_message(QueueUrl=url, MessageBody="{ rubbish")
        mapping = functions.create_event_source_mapping(
            EventSourceArn=arn,
            FunctionName=f"{name}-processor",
            BatchSize=10,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )
        yield f"{name}-monitor", url
        functions.delete_event_source_mapping(UUID=mapping["UUID"])
        for function in ("monitor", "processor"):
            functions.delete_function(FunctionName=f"{name}-{function}")
        sqs.delete_queue(QueueUrl=url)


def wait_until(there: Callable[[], bool]) -> None:
    """Look again and again, since the emulator polls its queues on its own clock."""
    clock, pause = SystemClock(), Event()
    end = clock.monotonic() + PATIENCE_SECONDS
    while not there() and clock.monotonic() < end:
        pause.wait(0.1)


def test_a_minute_goes_through_both_functions_and_only_the_bad_message_stays(
    functions: tuple[str, str], team: Team, ministack: Cloud
) -> None:
    monitor, url = functions
    services = [team.add_service(f"http://10.0.0.{number}/") for number in range(1, 4)]
    with closing(ministack.client("lambda")) as client:
        answer = client.invoke(FunctionName=monitor, Payload=b"{}")
        told: Any = json.loads(answer["Payload"].read())
    assert told == {"services": 3, "up": 0, "down": 3, "unsent": 0}
    wait_until(lambda: len(team.rows()) == len(services))
    assert [team.read_as_the_original(service)["status"] for service in services] == ["DOWN"] * 3

    def left() -> list[int]:
        wanted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        with closing(ministack.client("sqs")) as sqs:
            found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
        return [int(found[name]) for name in wanted]

    wait_until(lambda: left() == [0, 1])
    assert left() == [0, 1]
    assert len(team.rows()) == 3
