"""Every store keeps sequences up to the same limit, and none is promised beyond it (docs/decisions/0047)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.domain.errors import DamagedRecord, InvalidInput
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.domain.runs import RunState
from linkwatch_pipeline.domain.sequences import MAX_GIVEN_SEQUENCE, MAX_SEQUENCE
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline.use_cases.enqueue import enqueue
from linkwatch_pipeline.use_cases.feed_record import Fed, feed_record
from linkwatch_pipeline.use_cases.hand_check import seen_before
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, URL, a_link, a_run, an_observation
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

WEEKLY = AllocationSlot.WEEKLY


def saved(store: Store, link: Link) -> Link:
    store.save_link(link, replaces=None)
    return link


def test_the_last_sequence_is_kept(store: Store) -> None:
    link = saved(store, a_link())
    last = replace(an_observation(link), sequence=MAX_SEQUENCE, job_id=f"{MAX_SEQUENCE}:guide")
    assert store.record(last, default_confirm=1, now=MONDAY).kind is RecordKind.APPLIED
    assert list(store.observations()) == [last]


def test_none_is_promised_beyond_the_last(store: Store) -> None:
    links = [
        saved(store, a_link("near", last_sequence=MAX_SEQUENCE - 1)),
        saved(store, a_link(last_sequence=MAX_SEQUENCE)),
    ]
    promised = Allocation(run_id=RUN_ID, sequence=MAX_SEQUENCE, host="docs.example.com", config_version=1)
    assert store.allocate(links, WEEKLY, RUN_ID) == [promised, None]
    assert store.allocate(links, WEEKLY, RUN_ID) == [promised, None]
    assert store.get_link("guide") == links[1]


def test_a_sequence_by_hand_leaves_room_for_later_checks(store: Store) -> None:
    fed = Fed(link_id="guide", url=URL, sequence=MAX_SEQUENCE, status=200)
    with pytest.raises(InvalidInput, match="sequence: 9999999999 leaves too few for later checks"):
        feed_record(store, fed, default_confirm=1, now=MONDAY)
    assert list(store.links()) == []
    for sequence in (MAX_GIVEN_SEQUENCE, MAX_GIVEN_SEQUENCE + 1):
        kept = feed_record(store, replace(fed, sequence=sequence), default_confirm=1, now=MONDAY)
        assert kept.recorded.kind is RecordKind.APPLIED
    with pytest.raises(InvalidInput, match="from 0 to 1000000002"):
        seen_before(store, link_id="guide", sequence=MAX_SEQUENCE)


def test_a_link_without_a_next_sequence_is_left_out_and_no_message_is_sent(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    beyond = Allocation(run_id=RUN_ID, sequence=MAX_SEQUENCE + 1, host="docs.example.com", config_version=1)
    saved(store, a_link("fine", f"{URL}/fine"))
    saved(store, a_link("promised", f"{URL}/promised", allocations={WEEKLY: beyond}))
    saved(store, a_link(last_sequence=MAX_SEQUENCE))
    run = dispatch_run(store, store.create_run(a_run()), now=MONDAY)
    assert (run.state, run.expected, [job.link_id for job in store.jobs(RUN_ID)]) == (RunState.OPEN, 1, ["fine"])
    assert "link 'guide' cannot be checked any more" in caplog.text
    queue = MemoryQueue(VirtualClock(MONDAY))
    with pytest.raises(DamagedRecord, match="'linkwatch retire guide'"):
        enqueue(store, queue, link_id="guide")
    assert queue.receive(limit=10) == []
