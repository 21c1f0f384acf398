"""What lies among the dead letters of a shared queue: what waits for the tick, what goes out again, what never can."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus, count_chains, hand_job_id
from linkwatch_pipeline.use_cases.dead_letters import settle_dead_letters
from linkwatch_pipeline.use_cases.enqueue import check_enqueued
from linkwatch_pipeline.use_cases.queue_letters import Discarded, discard_letters, queue_letters, why_in_vain
from linkwatch_pipeline.use_cases.redrive import redrive
from linkwatch_pipeline_tests.builders import RUN_ID, a_link, a_run, after, an_observation, dispatched
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine


class Office:
    """A run with two hosts, and a queue in which whatever is buried is a dead letter."""

    def __init__(self, folder: Path) -> None:
        engine = Engine(folder, lambda url, asked: pytest.fail("nobody is asked"))
        self.engine, self.store, self.clock = engine, engine.store, engine.clock
        self.queue = MemoryQueue(self.clock, max_receives=1)
        links = [a_link(name, f"http://{name}.example/") for name in ("guide", "setup")]
        self.store.save_registry(links=[(link, None) for link in links])
        self.jobs = {job.link_id: job for job in dispatched(self.store, links, run=a_run(MONDAY))}

    def bury(self, *letters: CheckJob) -> None:
        self.queue.send(letters)
        self.queue.receive(limit=10)
        self.clock.advance(timedelta(seconds=181))

    def end(self, job: JobRecord) -> None:
        self.store.end_job(job, status=JobStatus.CANCELLED, reason=Reason.RETIRED)

    def by_hand(self, link_id: str = "guide", *, sequence: int = 7, config_version: int = 1) -> CheckJob:
        """A message as `enqueue` sends it, or as somebody made it up."""
        return CheckJob(
            job_id=hand_job_id(sequence, link_id),
            run_id="",
            link_id=link_id,
            sequence=sequence,
            config_version=config_version,
        )


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path)
    yield made
    made.store.close()


def test_the_letter_of_a_pending_job_waits_for_the_tick_and_is_not_thrown_away(office: Office) -> None:
    job = office.jobs["guide"]
    office.bury(job.message)
    letters = queue_letters(office.store, office.queue)
    assert (letters.waiting, letters.strays, letters.by_hand) == ([job], [], [])
    refused = discard_letters(office.store, office.queue, [job.job_id])
    assert refused == Discarded(found=[], missing=[], needed=[job.job_id])

    assert len(list(settle_dead_letters(office.store, office.queue, now=office.clock.now(), keep=True))) == 1
    letters = queue_letters(office.store, office.queue)
    assert (letters.waiting, letters.strays) == ([], [])
    assert discard_letters(office.store, office.queue, [job.job_id, "gone:guide"]) == Discarded(
        found=[job.job_id], missing=["gone:guide"], needed=[]
    )


def test_a_letter_whose_job_another_copy_ended_or_nobody_knows_is_a_stray(office: Office) -> None:
    office.bury(office.jobs["guide"].message, replace(office.jobs["guide"].message, job_id="x:guide", run_id="x"))
    office.end(office.jobs["guide"])
    assert [(stray.letter_id, stray.problem) for stray in queue_letters(office.store, office.queue).strays] == [
        (f"{RUN_ID}:guide", "its job is cancelled"),
        ("x:guide", "its job is not known here"),
    ]


def test_a_check_by_hand_that_can_be_made_is_sent_again(office: Office) -> None:
    letter = office.by_hand()
    office.bury(letter)
    letters = queue_letters(office.store, office.queue)
    assert (letters.by_hand, letters.strays) == ([letter], [])
    done = redrive(office.store, [letter.job_id], now=office.clock.now(), queue=office.queue)
    assert (done.sent_again, done.refused) == ([letter], {})
    assert office.queue.dead_letters() == []


@pytest.mark.parametrize(
    ("link_id", "sequence", "config_version", "why"),
    [
        ("nolink", 0, 1, "its link is not known here"),
        ("guide", 999_999_999_999, 1, "its sequence 999999999999 is beyond what a store keeps"),
        ("guide", 9_999_999_999, 1, "its sequence 9999999999 leaves too few for later checks"),
        ("guide", 7, 2, "its link was changed since it was sent"),
        ("guide", 0, 1, "its sequence belongs to another job"),  # the run's, which is pending
        ("retired", 7, 1, "its link is retired"),
    ],
)
def test_a_check_by_hand_that_cannot_be_made_is_a_stray_and_refused(
    office: Office, link_id: str, sequence: int, config_version: int, why: str
) -> None:
    retired = a_link("retired", "http://retired.example/", retired_at=after(hours=1))
    office.store.save_registry(links=[(retired, None)])
    letter = office.by_hand(link_id, sequence=sequence, config_version=config_version)
    office.bury(letter)
    letters = queue_letters(office.store, office.queue)
    assert letters.by_hand == []
    assert [(stray.letter_id, stray.problem) for stray in letters.strays] == [(letter.job_id, why)]
    done = redrive(office.store, [letter.job_id], now=office.clock.now(), queue=office.queue)
    assert done.sent_again == []
    assert why in done.refused[letter.job_id]
    assert office.queue.dead_letters() == [letter]
    assert discard_letters(office.store, office.queue, [letter.job_id]).found == [letter.job_id]


def test_a_worker_drops_a_check_by_hand_whose_sequence_no_history_has(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(check_enqueued(office.engine.parts(), office.queue, office.by_hand(sequence=10**12)))
    assert "check by hand is not made" in caplog.text


def test_a_check_by_hand_that_another_copy_made_is_a_stray(office: Office) -> None:
    observation = an_observation(a_link("guide", "http://guide.example/"), sequence=7)
    office.store.record(observation, default_confirm=1, now=office.clock.now())
    assert why_in_vain(office.store, office.by_hand()) == "its check was made"


def test_a_pending_job_of_a_run_that_is_over_waits_for_no_tick(office: Office) -> None:
    office.bury(office.jobs["guide"].message)
    office.store.close_run(RUN_ID, totals=count_chains(office.store.chains(RUN_ID)), at=office.clock.now())
    assert [stray.problem for stray in queue_letters(office.store, office.queue).strays] == ["its job is pending"]
