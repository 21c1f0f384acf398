"""What only SQS has: the body's form, batches that fail in part, faults, long polls, texts that are no message."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from linkwatch_pipeline.adapters.queue import sqs_dead_letters
from linkwatch_pipeline.adapters.queue.messages import read_message, write_message
from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.domain.errors import DeadLettersElsewhere, DeadLettersLost, QueueError, QueueUnusable
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import Receipt
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.silence import silence
from linkwatch_pipeline_tests.cloud.timed_sqs import make_queues

RUN_ID = "2026-09-28T09:00:00Z"
QUICK = Config(retries={"mode": "standard", "total_max_attempts": 1})


def job(link_id: str = "guide") -> CheckJob:
    return CheckJob(job_id=f"{RUN_ID}:{link_id}", run_id=RUN_ID, link_id=link_id, sequence=3, config_version=2)


RECEIPT = Receipt(job=job(), handle="h", receive_count=1)


class Case:
    """A queue on the emulator, and a client to look behind it."""

    def __init__(self, cloud: Cloud) -> None:
        self.client = cloud.client("sqs", config=QUICK)
        self.url, self.dead_url = make_queues(self.client, f"work-{uuid4().hex}")
        self.queue = SqsQueue(self.client, queue_url=self.url, dead_letter_url=self.dead_url, wait=timedelta(0))

    def answers(self, operation: str, *answers: tuple[int, object] | None) -> None:
        """Answer the next calls so instead of the emulator; None lets one through."""
        left = iter(answers)

        def answer(request: Any, **_: object) -> AWSResponse | None:
            given = next(left, None)
            return None if given is None else _Canned(request.url, *given)

        self.client.meta.events.register(f"before-send.sqs.{operation}", answer)


class _Canned(AWSResponse):  # type: ignore[misc]
    def __init__(self, url: str, status: int, content: object) -> None:
        super().__init__(url, status, {"content-type": "application/x-amz-json-1.0"}, None)
        self._content = json.dumps(content).encode()


@pytest.fixture
def case(ministack: Cloud) -> Case:
    return Case(ministack)


def bodies(case: Case) -> list[str]:
    answer = case.client.receive_message(QueueUrl=case.url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [message["Body"] for message in answer.get("Messages", ())]


def test_the_body_is_exactly_the_five_fields(case: Case) -> None:
    case.queue.send([job()])
    assert [json.loads(body) for body in bodies(case)] == [
        {
            "job_id": f"{RUN_ID}:guide",
            "run_id": RUN_ID,
            "link_id": "guide",
            "sequence": 3,
            "config_version": 2,
        }
    ]
    assert {field.name for field in fields(CheckJob)} == set(json.loads(write_message(job())))


@pytest.mark.parametrize(
    "body",
    [
        "",
        "secret",
        "[]",
        json.dumps({"job_id": "secret"}),
        write_message(job()).replace("3", "true"),
        write_message(job()).replace("3", '"3"'),
        write_message(job())[:-1] + ',"url":"https://secret.example.com/"}',
        "[" * 20_000,
        "[" * 262_144,  # as large as SQS takes
        write_message(job()).replace("3", "1" * 5_000),  # more digits than Python reads
        write_message(job()).replace("3", "1" * 4_000),
        write_message(job()).replace("3", "NaN"),
        write_message(job()).replace("3", "-1"),
        write_message(job()).replace("guide", "\\ud800"),
        write_message(job()).replace("guide", "\\u0000"),
        write_message(job()).replace("guide", "g" * 3_000),  # longer than a key of DynamoDB
        write_message(job()).replace(RUN_ID, RUN_ID * 200),
        write_message(job()).replace('"link_id":"guide"', '"link_id":"guide","link_id":"secret"'),
        write_message(job()).replace('"sequence"', '"run_id":"","sequence"'),  # a check by hand with a run's job id
    ],
    ids=lambda body: body[:20],
)
def test_anything_else_is_refused_without_being_quoted(body: str) -> None:
    with pytest.raises(ValueError, match="a message") as refused:
        read_message(body)
    assert "secret" not in str(refused.value)


def test_a_text_that_is_no_message_is_left_to_become_a_dead_letter(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    case.client.send_message(QueueUrl=case.url, MessageBody="https://user:secret@example.com/")
    with caplog.at_level(logging.ERROR):
        assert case.queue.receive() == []
    assert [(record.levelname, getattr(record, "action", None)) for record in caplog.records] == [("ERROR", "drop")]
    assert "secret" not in caplog.text
    case.client.send_message(QueueUrl=case.dead_url, MessageBody="not ours")
    assert case.queue.dead_letters() == []
    case.queue.unreadable_letters()  # reading does not remove it
    (stray,) = case.queue.unreadable_letters()
    assert (stray.problem, stray.beginning) == ("a message is not JSON", "not ours")
    assert case.queue.remove_dead_letter(stray.letter_id)
    assert not case.queue.remove_dead_letter(stray.letter_id)
    assert case.queue.unreadable_letters() == []


def test_what_sqs_failed_in_part_is_sent_again_alone(case: Case) -> None:
    fault = {"Id": "1", "Code": "InternalError", "SenderFault": False}
    case.answers("SendMessageBatch", (200, {"Successful": [], "Failed": [fault]}))
    case.queue.send([job("lost-by-the-canned-answer"), job("setup")])
    assert [read_message(body).link_id for body in bodies(case)] == ["setup"]


@pytest.mark.parametrize("sender_fault", [True, False])
def test_what_sqs_does_not_take_is_said(case: Case, sender_fault: bool) -> None:
    fault = {"Id": "0", "Code": "Nope", "Message": "not today", "SenderFault": sender_fault}
    answer = (200, {"Successful": [], "Failed": [fault]})
    case.answers("SendMessageBatch", answer, *([] if sender_fault else [answer, answer]))
    with pytest.raises(QueueError, match=r"1 of 1 messages \(Nope: not today\)"):
        case.queue.send([job()])
    assert bodies(case) == []


CALLS: dict[str, Callable[[SqsQueue], object]] = {
    "verify": SqsQueue.verify,
    "send": lambda queue: queue.send([job()]),
    "receive": SqsQueue.receive,
    "acknowledge": lambda queue: queue.acknowledge(RECEIPT),
    "change_visibility": lambda queue: queue.change_visibility(RECEIPT, delay=timedelta(0)),
    "visible": SqsQueue.visible,
    "dead_letters": SqsQueue.dead_letters,
    "unreadable_letters": SqsQueue.unreadable_letters,
    "remove_dead_letter": lambda queue: queue.remove_dead_letter(job().job_id),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_queue_that_cannot_serve_is_a_queue_error(case: Case, call: str) -> None:
    gone = SqsQueue(
        case.client, queue_url=f"{case.url}-absent", dead_letter_url=f"{case.dead_url}-absent", wait=timedelta(0)
    )
    with pytest.raises(QueueUnusable, match=r"SQS cannot serve.*-absent: look at its URL"):
        CALLS[call](gone)


@pytest.mark.parametrize("call", CALLS)
def test_a_silent_queue_is_told_soon(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = silence(monkeypatch)
    url = "https://sqs.eu-central-1.amazonaws.com/1/work"
    queue = SqsQueue.connect(queue_url=url, dead_letter_url=f"{url}-dead")
    for client in (queue._client, queue._poller):
        nobody.around(client)
    with pytest.raises(QueueError, match="SQS cannot serve"):
        CALLS[call](queue)
    assert 0 < sum(nobody.waits) <= 25


def test_an_answer_is_waited_for_longer_than_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch)
    for wait in (timedelta(0), timedelta(seconds=1), timedelta(seconds=20)):
        queue = SqsQueue.connect(queue_url="u", dead_letter_url="d", wait=wait)
        assert queue._poller.meta.config.read_timeout >= wait.total_seconds() + 5
        assert queue._client.meta.config.read_timeout >= min(wait.total_seconds(), 1) + 5


@pytest.mark.parametrize(
    ("code", "is_for_good"),
    [("AccessDenied", True), ("InvalidClientTokenId", True), ("RequestThrottled", False), ("InternalError", False)],
)
def test_who_is_refused_for_good_need_not_wait(case: Case, code: str, is_for_good: bool) -> None:
    case.answers("SendMessageBatch", (400, {"__type": code}))
    with pytest.raises(QueueError, match=code) as refused:
        case.queue.send([job()])
    assert isinstance(refused.value, QueueUnusable) is is_for_good


def test_dead_letters_that_go_elsewhere_are_found_out(case: Case) -> None:
    case.queue.verify()
    other = SqsQueue(case.client, queue_url=case.url, dead_letter_url=f"{case.dead_url}-absent")
    with pytest.raises(DeadLettersElsewhere, match=f"go to '{case.dead_url.rpartition('/')[2]}'"):
        other.verify()
    with pytest.raises(DeadLettersElsewhere, match="no redrive policy"):
        SqsQueue(case.client, queue_url=case.dead_url, dead_letter_url=case.url).verify()


def test_a_dead_letter_queue_that_was_deleted_is_found_out(case: Case) -> None:
    case.client.delete_queue(QueueUrl=case.dead_url)
    with pytest.raises(DeadLettersLost, match=f"leads to '{case.dead_url.rpartition('/')[2]}', which somebody deleted"):
        case.queue.verify()


@pytest.mark.parametrize(
    ("code", "is_fine"), [("AccessDenied", True), ("AccessDeniedException", True), ("Busy", False)]
)
def test_who_may_not_ask_the_dead_letter_queue_works_on(case: Case, code: str, is_fine: bool) -> None:
    case.answers("GetQueueAttributes", None, (400, {"__type": code}))
    with nullcontext() if is_fine else pytest.raises(QueueError, match=code):
        case.queue.verify()


def test_a_message_is_waited_for(case: Case) -> None:
    case.queue.send([job()], delay=timedelta(milliseconds=300))  # rounded up to the one second that is waited for
    (receipt,) = SqsQueue(
        case.client, queue_url=case.url, dead_letter_url=case.dead_url, wait=timedelta(seconds=20)
    ).receive()
    assert receipt.job == job()


def test_dead_letters_are_given_back_after_a_look_the_oldest_first(case: Case) -> None:
    for link_id in ("guide", "setup", "guide"):
        case.client.send_message(QueueUrl=case.dead_url, MessageBody=write_message(job(link_id)))
    for _ in range(2):
        assert [letter.link_id for letter in case.queue.dead_letters()] == ["guide", "setup"]
    assert case.queue.remove_dead_letter(job("guide").job_id)
    assert [letter.link_id for letter in case.queue.dead_letters()] == ["setup"]


def given_up(case: Case, how_many: int) -> None:
    for start in range(0, how_many, 10):
        entries = [
            {"Id": str(n), "MessageBody": write_message(job(f"link-{n:04}"))}
            for n in range(start, min(start + 10, how_many))
        ]
        case.client.send_message_batch(QueueUrl=case.dead_url, Entries=entries)


def hidden(case: Case) -> int:
    asked = ["ApproximateNumberOfMessagesNotVisible"]
    told = case.client.get_queue_attributes(QueueUrl=case.dead_url, AttributeNames=asked)["Attributes"]
    return int(told["ApproximateNumberOfMessagesNotVisible"])


def counted(case: Case, *operations: str) -> list[str]:
    calls: list[str] = []
    for operation in operations:
        case.client.meta.events.register(
            f"before-send.sqs.{operation}", lambda operation=operation, **_: calls.append(operation)
        )
    return calls


def test_a_look_at_very_many_dead_letters_ends_and_hides_none_afterwards(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqs_dead_letters, "MOST_LETTERS_READ", most := 60)
    given_up(case, most + 30)
    calls = counted(case, "ReceiveMessage")
    letters = case.queue.dead_letters()
    assert len(letters) == len({letter.job_id for letter in letters}) == most
    assert len(calls) == most / 10
    assert hidden(case) == 0
    for letter in letters:
        assert case.queue.remove_dead_letter(letter.job_id)
    assert len(calls) == most / 10  # none of them was searched for
    assert len(case.queue.dead_letters()) == 30


def test_nothing_is_waited_for_while_dead_letters_are_hidden(case: Case) -> None:
    given_up(case, 12)
    waits: list[object] = []
    case.client.meta.events.register(
        "before-parameter-build.sqs.ReceiveMessage", lambda params, **_: waits.append(params["WaitTimeSeconds"])
    )
    patient = SqsQueue(case.client, queue_url=case.url, dead_letter_url=case.dead_url)
    assert len(patient.dead_letters()) == 12
    assert waits == [1, 0, 0, 0]
    assert hidden(case) == 0


def test_letters_that_come_back_during_a_look_end_it(case: Case) -> None:
    given_up(case, 10)
    case.client.meta.events.register(
        "before-parameter-build.sqs.ReceiveMessage", lambda params, **_: params.update(VisibilityTimeout=0)
    )
    calls = counted(case, "ReceiveMessage")
    assert len(case.queue.dead_letters()) == 10
    assert len(calls) == 2


def test_a_letter_that_no_look_found_is_searched_for(case: Case) -> None:
    given_up(case, 25)
    assert case.queue.remove_dead_letter(job("link-0024").job_id)
    assert hidden(case) == 0
    assert not case.queue.remove_dead_letter(job("link-0024").job_id)
    assert len(case.queue.dead_letters()) == 24


def test_the_client_is_found_the_ordinary_way(case: Case, ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ministack.env.items():
        monkeypatch.setenv(name, value)
    queue = SqsQueue.connect(queue_url=case.url, dead_letter_url=case.dead_url, wait=timedelta(0))
    queue.send([job()])
    assert [receipt.job for receipt in queue.receive()] == [job()]
