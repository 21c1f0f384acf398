"""What only the queue in memory does: order, exact waits, and staying cheap when it is full."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline_tests.virtual_clock import VirtualClock


class ByName:
    """Urgency from a table that a test may change meanwhile."""

    def __init__(self, urgencies: Mapping[str, float]) -> None:
        self.urgencies = dict(urgencies)
        self.turned_away: set[str] = set()

    def urgency(self, job: CheckJob) -> float:
        return self.urgencies[job.link_id]

    def admits(self, job: CheckJob) -> bool:
        return job.link_id not in self.turned_away


def job(link_id: str) -> CheckJob:
    return CheckJob(job_id=f"1:{link_id}", run_id="r", link_id=link_id, sequence=1, config_version=1)


def received(queue: MemoryQueue, limit: int = 10) -> list[str]:
    return [receipt.job.link_id for receipt in queue.receive(limit=limit)]


def test_without_an_order_the_longest_visible_goes_first() -> None:
    clock = VirtualClock()
    queue = MemoryQueue(clock)
    queue.send([job("late")], delay=timedelta(seconds=20))
    queue.send([job("early-1"), job("early-2")], delay=timedelta(seconds=10))
    queue.send([job("now")])
    clock.advance(timedelta(seconds=30))
    assert received(queue) == ["now", "early-1", "early-2", "late"]


def test_with_an_order_the_most_urgent_visible_goes_first() -> None:
    clock = VirtualClock()
    queue = MemoryQueue(clock, order=ByName({"short": 1.0, "long": 9.0, "longest": 99.0}))
    queue.send([job("short"), job("long")])
    queue.send([job("longest")], delay=timedelta(seconds=5))
    assert received(queue, limit=1) == ["long"]
    clock.advance(timedelta(seconds=5))
    assert received(queue) == ["longest", "short"]


def test_the_urgency_is_asked_anew_when_a_message_comes_back() -> None:
    clock = VirtualClock()
    order = ByName({"a": 5.0, "b": 1.0})
    queue = MemoryQueue(clock, order=order, visibility=timedelta(seconds=10))
    queue.send([job("a"), job("b")])
    assert received(queue) == ["a", "b"]
    order.urgencies["b"] = 6.0
    clock.advance(timedelta(seconds=10))
    assert received(queue) == ["b", "a"]


def test_while_the_most_urgent_is_turned_away_nothing_is_received() -> None:
    clock = VirtualClock()
    order = ByName({"a": 5.0, "b": 1.0, "late": 9.0})
    queue = MemoryQueue(clock, order=order)
    queue.send([job("a"), job("b")])
    queue.send([job("late")], delay=timedelta(seconds=30))
    order.turned_away = {"a"}
    assert received(queue) == []
    assert queue.next_visible_in() == timedelta(seconds=30)
    clock.advance(timedelta(seconds=30))
    assert received(queue) == ["late"]
    order.turned_away = set()
    assert received(queue) == ["a", "b"]


def test_the_next_moment_is_known_exactly_and_forgets_deleted_messages() -> None:
    clock = VirtualClock()
    queue = MemoryQueue(clock)
    queue.send([job("a")])
    queue.send([job("b")], delay=timedelta(seconds=300))
    assert queue.next_visible_in() == timedelta(0)
    (receipt,) = queue.receive()
    assert queue.next_visible_in() == timedelta(seconds=180)
    queue.acknowledge(receipt)
    assert queue.next_visible_in() == timedelta(seconds=300)


def test_an_expired_receipt_still_acknowledges_until_the_next_delivery() -> None:
    clock = VirtualClock()
    queue = MemoryQueue(clock, visibility=timedelta(seconds=10))
    queue.send([job("a")])
    (receipt,) = queue.receive()
    clock.advance(timedelta(seconds=10))
    assert queue.next_visible_in() == timedelta(0)
    queue.acknowledge(receipt)
    assert received(queue) == []


def test_a_message_that_is_visible_again_cannot_be_hidden_with_its_old_receipt() -> None:
    clock = VirtualClock()
    queue = MemoryQueue(clock, visibility=timedelta(seconds=10))
    queue.send([job("a")])
    (receipt,) = queue.receive()
    clock.advance(timedelta(seconds=10))
    queue.change_visibility(receipt, delay=timedelta(seconds=600))
    assert received(queue) == ["a"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(0, 30)),
            st.tuples(st.just("pass"), st.integers(0, 40)),
            st.tuples(st.just("receive"), st.integers(1, 4)),
            st.tuples(st.just("acknowledge"), st.integers(0, 100)),
            st.tuples(st.just("postpone"), st.integers(0, 100)),
        ),
        max_size=60,
    )
)
def test_every_message_ends_acknowledged_dead_or_still_there(steps: list[tuple[str, int]]) -> None:
    clock = VirtualClock()
    queue = MemoryQueue(clock, visibility=timedelta(seconds=25), max_receives=3)
    sent, acknowledged, receipts = set(), set(), []
    for number, (verb, amount) in enumerate(steps):
        if verb == "send":
            queue.send([job(f"m{number}")], delay=timedelta(seconds=amount))
            sent.add(f"m{number}")
        elif verb == "pass":
            clock.advance(timedelta(seconds=amount))
        elif verb == "receive":
            receipts += queue.receive(limit=amount)
        elif receipts and verb == "acknowledge":
            receipt = receipts[amount % len(receipts)]
            latest = max(r.receive_count for r in receipts if r.job == receipt.job)
            if receipt.receive_count == latest and receipt.job not in queue.dead_letters():
                acknowledged.add(receipt.job.link_id)
            queue.acknowledge(receipt)
        elif receipts:
            queue.change_visibility(receipts[amount % len(receipts)], delay=timedelta(seconds=amount))
    left = set()
    while (wait := queue.next_visible_in()) is not None:
        clock.advance(wait)
        left.update(received(queue))
    dead = {letter.link_id for letter in queue.dead_letters()}
    assert left <= dead
    assert dead.isdisjoint(acknowledged)
    assert dead | acknowledged == sent


def test_a_hundred_thousand_visible_messages_stay_cheap() -> None:
    clock = VirtualClock()
    urgencies = {f"m{n}": float(n * 7919 % 100_003) for n in range(100_000)}
    queue = MemoryQueue(clock, order=ByName(urgencies))
    begun = time.process_time()
    queue.send([job(name) for name in urgencies])
    first = received(queue, limit=2_000)
    # A heap needs about half a second here; anything that scans or sorts per message needs minutes.
    assert time.process_time() - begun < 30
    assert first == sorted(urgencies, key=urgencies.__getitem__, reverse=True)[:2_000]
