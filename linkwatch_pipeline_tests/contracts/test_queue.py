"""What every queue promises (`ports.Queue`), run on each adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.domain.errors import QueueError
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import Queue
from linkwatch_pipeline_tests.cloud.timed_sqs import TimedSqs, make_queues
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

VISIBILITY = timedelta(seconds=180)
MAX_RECEIVES = 5


@dataclass(frozen=True)
class QueueCase:
    """A queue with the settings above, and a way to let time pass for it."""

    queue: Queue
    pass_time: Callable[[timedelta], None]


def memory_case(request: pytest.FixtureRequest) -> QueueCase:
    clock = VirtualClock()
    return QueueCase(MemoryQueue(clock, visibility=VISIBILITY, max_receives=MAX_RECEIVES), clock.advance)


def sqs_case(request: pytest.FixtureRequest) -> QueueCase:
    emulator: TimedSqs = request.getfixturevalue("timed_sqs")
    clock, client = emulator.new_clock(), emulator.client
    url, dead = make_queues(
        client,
        f"work-{uuid4().hex}",
        visibility_seconds=int(VISIBILITY.total_seconds()),
        max_receives=MAX_RECEIVES,
    )
    queue = SqsQueue(client, queue_url=url, dead_letter_url=dead, wait=timedelta(0))
    return QueueCase(queue, clock.advance)


@pytest.fixture(params=[pytest.param(memory_case, id="memory"), pytest.param(sqs_case, id="sqs")])
def case(request: pytest.FixtureRequest) -> QueueCase:
    made = request.param(request)
    assert isinstance(made, QueueCase)
    return made


def job(link_id: str = "guide", sequence: int = 3) -> CheckJob:
    run_id = "2026-09-28T09:00:00Z"
    return CheckJob(job_id=f"{run_id}:{link_id}", run_id=run_id, link_id=link_id, sequence=sequence, config_version=2)


def drain(queue: Queue) -> list[CheckJob]:
    """Receive and acknowledge whatever is visible."""
    jobs = []
    while receipts := queue.receive(limit=10):
        for receipt in receipts:
            jobs.append(receipt.job)
            queue.acknowledge(receipt)
    return jobs


def exhaust(case: QueueCase) -> None:
    """Fail every visible message until it is given up."""
    for _ in range(MAX_RECEIVES):
        assert case.queue.receive(limit=10)
        case.pass_time(VISIBILITY)
    assert case.queue.receive() == []


def test_an_empty_queue_gives_nothing(case: QueueCase) -> None:
    assert case.queue.receive() == []
    assert case.queue.next_visible_in() is None
    assert case.queue.dead_letters() == []
    assert case.queue.unreadable_letters() == []


def test_a_queue_that_is_there_says_so_and_no_message_is_touched(case: QueueCase) -> None:
    case.queue.send([job()])
    case.queue.verify()
    (receipt,) = case.queue.receive()
    assert receipt.receive_count == 1


def test_a_message_arrives_whole(case: QueueCase) -> None:
    case.queue.send([job()])
    (receipt,) = case.queue.receive()
    assert receipt.job == job()
    assert receipt.receive_count == 1


def test_sending_nothing_is_allowed(case: QueueCase) -> None:
    case.queue.send([])
    assert case.queue.receive() == []


def test_many_messages_arrive_once_each(case: QueueCase) -> None:
    sent = [job(f"link-{n}") for n in range(25)]
    case.queue.send(sent)
    assert sorted(drain(case.queue), key=lambda j: j.link_id) == sorted(sent, key=lambda j: j.link_id)


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_receive_gives_at_most_the_limit(case: QueueCase, limit: int) -> None:
    case.queue.send([job(f"link-{n}") for n in range(12)])
    assert len(case.queue.receive(limit=limit)) == limit


def test_a_received_message_is_hidden(case: QueueCase) -> None:
    case.queue.send([job()])
    case.queue.receive()
    assert case.queue.receive() == []
    case.pass_time(VISIBILITY - timedelta(seconds=1))
    assert case.queue.receive() == []


def test_an_acknowledged_message_never_comes_back(case: QueueCase) -> None:
    case.queue.send([job()])
    (receipt,) = case.queue.receive()
    case.queue.acknowledge(receipt)
    case.queue.acknowledge(receipt)  # a repetition is harmless
    case.pass_time(2 * VISIBILITY)
    assert case.queue.receive() == []
    assert case.queue.next_visible_in() is None


def test_an_unacknowledged_message_comes_back_and_says_how_often(case: QueueCase) -> None:
    case.queue.send([job()])
    for count in range(1, MAX_RECEIVES + 1):
        (receipt,) = case.queue.receive()
        assert (receipt.job, receipt.receive_count) == (job(), count)
        case.pass_time(VISIBILITY)


def test_the_queue_counts_what_anybody_could_receive(case: QueueCase) -> None:
    assert case.queue.visible() == 0
    case.queue.send([job("a"), job("b"), job("c")])
    case.queue.send([job("later")], delay=timedelta(seconds=90))
    assert case.queue.visible() == 3
    receipt, _ = case.queue.receive(limit=2)
    assert case.queue.visible() == 1
    case.queue.acknowledge(receipt)
    case.pass_time(VISIBILITY)
    assert case.queue.visible() == 3


def test_a_delayed_message_waits_for_its_time(case: QueueCase) -> None:
    case.queue.send([job()], delay=timedelta(seconds=90))
    case.pass_time(timedelta(seconds=89))
    assert case.queue.receive() == []
    case.pass_time(timedelta(seconds=1))
    assert drain(case.queue) == [job()]


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), timedelta(seconds=901)])
def test_a_delay_outside_the_bounds_is_refused(case: QueueCase, delay: timedelta) -> None:
    with pytest.raises(QueueError, match="0 to 900 s"):
        case.queue.send([job()], delay=delay)
    assert case.queue.receive() == []


def test_the_longest_delay_is_accepted(case: QueueCase) -> None:
    case.queue.send([job()], delay=timedelta(seconds=900))
    case.pass_time(timedelta(seconds=900))
    assert drain(case.queue) == [job()]


def test_an_outdated_receipt_does_not_delete_the_later_delivery(case: QueueCase) -> None:
    case.queue.send([job()])
    (outdated,) = case.queue.receive()
    case.pass_time(VISIBILITY)
    case.queue.receive()
    case.queue.acknowledge(outdated)
    case.pass_time(VISIBILITY)
    (third,) = case.queue.receive()
    assert third.receive_count == 3


def test_an_outdated_receipt_does_not_postpone_the_later_delivery(case: QueueCase) -> None:
    case.queue.send([job()])
    (outdated,) = case.queue.receive()
    case.pass_time(VISIBILITY)
    case.queue.receive()
    case.queue.change_visibility(outdated, delay=timedelta(0))
    assert case.queue.receive() == []


def test_a_message_can_come_back_sooner(case: QueueCase) -> None:
    case.queue.send([job()])
    (receipt,) = case.queue.receive()
    case.queue.change_visibility(receipt, delay=timedelta(seconds=20))
    assert case.queue.receive() == []
    case.pass_time(timedelta(seconds=20))
    (again,) = case.queue.receive()
    assert again.receive_count == 2


def test_a_message_can_come_back_at_once(case: QueueCase) -> None:
    case.queue.send([job()])
    (receipt,) = case.queue.receive()
    case.queue.change_visibility(receipt, delay=timedelta(0))
    assert len(case.queue.receive()) == 1


def test_a_message_can_come_back_later(case: QueueCase) -> None:
    case.queue.send([job()])
    (receipt,) = case.queue.receive()
    case.queue.change_visibility(receipt, delay=timedelta(seconds=600))
    case.pass_time(timedelta(seconds=599))
    assert case.queue.receive() == []
    case.pass_time(timedelta(seconds=1))
    assert drain(case.queue) == [job()]


def test_a_receipt_still_acknowledges_after_its_visibility_was_changed(case: QueueCase) -> None:
    case.queue.send([job()])
    (receipt,) = case.queue.receive()
    case.queue.change_visibility(receipt, delay=timedelta(seconds=600))
    case.queue.acknowledge(receipt)
    case.pass_time(timedelta(seconds=600))
    assert case.queue.receive() == []


def test_a_message_that_keeps_failing_becomes_a_dead_letter(case: QueueCase) -> None:
    case.queue.send([job()])
    exhaust(case)
    assert case.queue.dead_letters() == [job()]
    assert case.queue.dead_letters() == [job()]  # reading does not remove them
    assert case.queue.next_visible_in() is None


def test_the_last_delivery_can_still_succeed(case: QueueCase) -> None:
    case.queue.send([job()])
    for _ in range(MAX_RECEIVES - 1):
        case.queue.receive()
        case.pass_time(VISIBILITY)
    (receipt,) = case.queue.receive()
    case.queue.acknowledge(receipt)
    case.pass_time(VISIBILITY)
    assert case.queue.receive() == []
    assert case.queue.dead_letters() == []


def test_a_dead_letter_can_be_removed_once(case: QueueCase) -> None:
    case.queue.send([job("guide"), job("setup")])
    exhaust(case)
    assert sorted(dead.link_id for dead in case.queue.dead_letters()) == ["guide", "setup"]
    assert case.queue.remove_dead_letter(job("guide").job_id)
    assert not case.queue.remove_dead_letter(job("guide").job_id)
    assert [dead.link_id for dead in case.queue.dead_letters()] == ["setup"]


def test_one_failing_message_does_not_hold_up_the_others(case: QueueCase) -> None:
    case.queue.send([job("poison")])
    for n in range(MAX_RECEIVES + 1):
        case.queue.receive(limit=10)
        case.pass_time(VISIBILITY)
        case.queue.send([job(f"healthy-{n}")])
        received = case.queue.receive(limit=10)
        assert f"healthy-{n}" in {receipt.job.link_id for receipt in received}
        for receipt in received:
            if receipt.job.link_id != "poison":
                case.queue.acknowledge(receipt)
            else:
                case.queue.change_visibility(receipt, delay=timedelta(0))
    assert [dead.link_id for dead in case.queue.dead_letters()] == ["poison"]


def test_the_queue_says_when_to_look_again_or_that_nobody_can_know(case: QueueCase) -> None:
    case.queue.send([job()], delay=timedelta(seconds=90))
    assert case.queue.next_visible_in() in (timedelta(seconds=90), None)
    case.pass_time(timedelta(seconds=90))
    assert case.queue.next_visible_in() in (timedelta(0), None)
    case.queue.receive()
    assert case.queue.next_visible_in() in (VISIBILITY, None)
