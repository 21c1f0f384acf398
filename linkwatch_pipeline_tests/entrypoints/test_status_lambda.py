"""The two Lambda functions, by the events that AWS sends them, on SQS, PostgreSQL and Redis of our own."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.service_status import row_id
from linkwatch_pipeline.entrypoints import status_lambda
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table, store_on
from linkwatch_pipeline_tests.services.team import USER, Team

SENT_MS = "1795943107500"  # 2026-11-29T08:25:07.5Z


class Context:
    """What AWS hands to a handler, as far as it is looked at."""

    aws_request_id = "request-1"

    def __init__(self, remaining_ms: int = 60_000) -> None:
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms


@pytest.fixture(autouse=True)
def environment(team: Team, ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The variables of both functions; the queue's URL."""
    with closing(ministack.client("sqs")) as client:
        queue = str(client.create_queue(QueueName=f"lambda-{uuid4().hex[:8]}")["QueueUrl"])
    for name, value in {**ministack.env, **team.env, "SQS_QUEUE_URL": queue}.items():
        monkeypatch.setenv(name, value)
    forget()
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield queue
    forget()
    root.handlers[:] = before  # the functions' own would write to this test's captured output for ever
    root.setLevel(level)
    status_lambda._logs.cache_clear()


def forget() -> None:
    """A cold start."""
    for app in (status_lambda._monitor_app, status_lambda._processor_app, status_lambda._teller_app):
        if app.cache_info().currsize:
            app().close()
        app.cache_clear()
    status_lambda._last_known.cache_clear()


def record(service_id: str, message_id: str, **changes: Any) -> dict[str, Any]:
    body = {"service_id": service_id, "user_id": USER, "url": "https://a.example", "status": "UP", "latency_ms": 12.35}
    return {
        "messageId": message_id,
        "receiptHandle": "handle",
        "body": json.dumps(body | changes),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": SENT_MS},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }


def process(*records: dict[str, Any]) -> list[str]:
    """The ids of the messages that have to come back."""
    answer = status_lambda.processor_handler({"Records": list(records)}, Context())
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_a_batch_fails_only_where_it_is_wrong(team: Team) -> None:
    service = team.add_service("https://a.example")
    strange = record(service, "strange") | {"attributes": {}}
    assert process(record(service, "good"), record(service, "bad", status="?"), strange) == ["strange", "bad"]
    assert [row[0] for row in team.rows(service)] == [str(row_id("good"))]
    assert team.cached(service) == {"status": "UP", "response_time": 12.35, "checked_at": "2026-11-29T09:05:07Z"}
    assert process(record(service, "good"), record(service, "good")) == []
    assert len(team.rows(service)) == 1


def test_the_monitor_sends_what_the_processor_takes(team: Team, ministack: Cloud, environment: str) -> None:
    internal = team.add_service("http://127.0.0.1:8080/admin")
    assert status_lambda.monitor_handler({}, Context()) == {"services": 1, "up": 0, "down": 1, "unsent": 0}
    with closing(ministack.client("sqs")) as client:
        (message,) = client.receive_message(
            QueueUrl=environment, AttributeNames=["All"], MessageAttributeNames=["All"]
        )["Messages"]
    body = json.loads(message["Body"])
    assert set(body) == {"service_id", "user_id", "url", "status", "latency_ms"}
    assert (body["service_id"], body["user_id"], body["status"]) == (internal, USER, "DOWN")
    event = {
        "messageId": message["MessageId"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
            for name, value in message["MessageAttributes"].items()
        },
    }
    assert process(event) == []
    assert team.read_as_the_original(internal)["status"] == "DOWN"


def test_the_monitor_asks_nobody_whom_it_could_not_tell_of_before_its_end(team: Team) -> None:
    team.add_service("http://127.0.0.1:8080/")
    assert status_lambda.monitor_handler({}, Context(remaining_ms=5_000))["down"] == 0


def test_the_log_is_one_json_object_a_line_and_names_the_reason(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    service = team.add_service("http://10.1.2.3/?token=s3cret")
    status_lambda._logs.cache_clear()
    status_lambda.monitor_handler({}, Context())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (refused,) = [line for line in lines if line.get("action") == "refused"]
    assert (refused["service_id"], refused["reason"], refused["request_id"]) == (
        service,
        "blocked_address",
        "request-1",
    )
    assert "s3cret" not in json.dumps(lines)


@pytest.mark.parametrize("missing", ["DATABASE_URL", "SQS_QUEUE_URL"])
def test_a_missing_variable_is_an_error_of_the_function(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(missing)
    with pytest.raises(ConfigurationError, match=missing):
        status_lambda.monitor_handler({}, Context())


def test_the_database_may_be_named_by_a_secret(team: Team, ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(ministack.client("secretsmanager")) as client:
        name = f"database-{uuid4().hex[:8]}"
        secret = client.create_secret(Name=name, SecretString=team.database_url)
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("DATABASE_URL_SECRET_ARN", secret["ARN"])
    service = team.add_service("https://a.example")
    assert process(record(service, "m1")) == []
    assert len(team.rows(service)) == 1


@pytest.fixture
def outbox(ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The table of the weekly check, which the teller is told of."""
    name = make_table(ministack)
    aws = {"PROFILE": "aws", "TABLE": name, "CONTACT": "https://ops.example", "ALLOW_ENDPOINT": "true"}
    for variable, value in aws.items():
        monkeypatch.setenv(f"LINKWATCH_{variable}", value)
    with closing(store_on(ministack.client("dynamodb"), name)) as store:
        yield store


def test_a_change_is_told_to_the_outbox_of_the_weekly_check_once(
    team: Team, outbox: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATUS_NOTICES", "on")
    service = team.add_service("https://a.example/")
    assert process(record(service, "m1", status="DOWN")) == []
    assert [status_lambda.tell_handler({}, Context()) for _ in range(2)] == [{"told": 1}, {"told": 0}]
    with team.database() as db:  # as if it had been killed before it wrote down that it told
        db.run("UPDATE linkwatch_service_changes SET told_at = NULL")
    assert status_lambda.tell_handler({}, Context()) == {"told": 0}
    assert [notice.link_id for notice in outbox.notices()] == [f"service-{service}"]


def test_a_teller_without_an_outbox_is_an_error_of_the_function() -> None:
    with pytest.raises(ConfigurationError, match="LINKWATCH_PROFILE"):
        status_lambda.tell_handler({}, Context())
