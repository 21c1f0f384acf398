"""Messages that the queue gave up: their chain moves on, people see them, and a redrive looks at the link again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import CheckJob, JobStatus, RunState
from linkwatch_pipeline.use_cases.dead_letters import dead_letters, settle_dead_letters
from linkwatch_pipeline.use_cases.dispatch import due_heads
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline.use_cases.queue_letters import queue_letters
from linkwatch_pipeline.use_cases.redrive import Redriven, redrive
from linkwatch_pipeline_tests.builders import RETRY_ID, RUN_ID, a_link, after
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer

URLS = [*(f"http://a.example/{n}" for n in range(4)), "http://b.example/", "http://c.example/0", "http://c.example/1"]
BAD = "http://a.example/1"
SECRET = "c4naryS3cret"
BAD_JOB = f"{RUN_ID}:link-1"


class OurFault(Exception):
    """A fault of ours, in the middle of a check."""


class Weeks:
    """A home whose fetcher fails on some URLs for reasons of its own."""

    def __init__(self, folder: Path, **options: int) -> None:
        self.failing = {BAD}
        self.engine = Engine(folder, self._answer, **options)
        self.store = self.engine.store
        self.store.save_registry(links=[(a_link(f"link-{n}", url), None) for n, url in enumerate(URLS)])

    def _answer(self, url: str, asked: int) -> Answer:
        if url in self.failing:
            raise OurFault(f"it quotes the page: {SECRET}")
        return Answer(status=429, retry_after="1") if url.endswith("c.example/1") and asked == 0 else Answer()

    def redrive(self, *job_ids: str) -> Redriven:
        return redrive(self.store, job_ids, now=self.engine.clock.now())


@pytest.fixture
def weeks(tmp_path: Path) -> Iterator[Weeks]:
    made = Weeks(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("concurrency", [1, 20])
def test_a_job_that_fails_again_and_again_is_given_up_and_holds_nobody_up(
    tmp_path: Path, concurrency: int, caplog: pytest.LogCaptureFixture
) -> None:
    weeks = Weeks(tmp_path, concurrency=concurrency)
    run = weeks.engine.observe()
    assert run.state is RunState.CLOSED
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 5, "throttled": 1, "abandoned": 1}
    assert weeks.engine.clock.now() - MONDAY < timedelta(minutes=3)
    (letter,) = dead_letters(weeks.store, now=weeks.engine.clock.now())
    assert (letter.job.job_id, letter.job.reason, letter.redriven_as) == (BAD_JOB, Reason.DEAD_LETTER, None)
    weeks.store.close()
    assert caplog.text.count("check failed: OurFault") == 5
    assert "in _answer" in caplog.text  # where it was, but not what it said
    assert SECRET not in caplog.text


@pytest.mark.parametrize("keep", [False, True])
def test_a_letter_is_settled_once_and_stays_only_where_it_has_to(weeks: Weeks, keep: bool) -> None:
    store, clock = weeks.store, weeks.engine.clock
    queue = MemoryQueue(clock, max_receives=1)
    run = begin_week(store, MONDAY, now=clock.now())
    heads = [job for job, _ in due_heads(store, run.run_id, now=clock.now())]
    queue.send([job.message for job in heads])
    assert len(queue.receive(limit=10)) == 3
    store.end_job(heads[1], status=JobStatus.CANCELLED, reason=Reason.RETIRED)  # by another copy of its message
    clock.advance(timedelta(seconds=181))

    settled = list(settle_dead_letters(store, queue, now=clock.now(), keep=keep))
    assert [(s.job.link_id, s.following and s.following[0].link_id) for s in settled] == [
        ("link-0", "link-1"),
        ("link-5", "link-6"),
    ]
    assert [letter.link_id for letter in queue.dead_letters()] == (["link-0", "link-5"] if keep else [])
    before = [*store.jobs(run.run_id), *store.chains(run.run_id)]
    assert list(settle_dead_letters(store, queue, now=clock.now(), keep=keep)) == []
    assert [*store.jobs(run.run_id), *store.chains(run.run_id)] == before
    assert [letter.job.link_id for letter in dead_letters(store, now=clock.now())] == ["link-0", "link-5"]


@pytest.mark.parametrize("keep", [False, True])
def test_a_letter_that_is_thrown_away_because_nobody_knows_its_job_is_told(
    weeks: Weeks, keep: bool, caplog: pytest.LogCaptureFixture
) -> None:
    queue = MemoryQueue(weeks.engine.clock, max_receives=1)
    unknown = CheckJob(job_id="elsewhere:guide", run_id="elsewhere", link_id="guide", sequence=1, config_version=1)
    queue.send([unknown])
    queue.receive()
    weeks.engine.clock.advance(timedelta(seconds=181))
    assert [(s.letter_id, s.problem) for s in queue_letters(weeks.store, queue).strays] == [
        ("elsewhere:guide", "its job is not known here")
    ]
    assert list(settle_dead_letters(weeks.store, queue, now=weeks.engine.clock.now(), keep=keep)) == []
    assert queue.dead_letters() == []
    [told] = [record for record in caplog.records if record.getMessage() == "dead letter thrown away"]
    assert (vars(told)["job_id"], vars(told)["error"]) == ("elsewhere:guide", "its job is not known here")


def test_a_redrive_is_a_new_job_in_a_retry_run_and_the_old_one_stays_as_it_was(weeks: Weeks) -> None:
    weekly = weeks.engine.observe()
    retry = weeks.engine.observe()  # of the throttled one
    assert retry.run_id == RETRY_ID
    old = weeks.store.get_job(RUN_ID, "link-1")
    assert old is not None
    weeks.failing.clear()

    done = weeks.redrive(BAD_JOB)
    assert done.refused == {}
    (job,) = done.jobs
    assert (job.run_id, job.link_id, job.retry_of, job.sequence) == (f"{RUN_ID}~retry-2", "link-1", BAD_JOB, 1)
    (letter,) = dead_letters(weeks.store, now=weeks.engine.clock.now())
    assert letter.redriven_as == job

    run = weeks.engine.observe()
    assert (run.run_id, run.state) == (job.run_id, RunState.CLOSED)
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 1}
    assert weeks.store.get_job(RUN_ID, "link-1") == old
    assert weeks.store.get_run(RUN_ID) == weekly
    assert weeks.engine.week_is_over()
    (seen,) = weeks.store.observations(link_id="link-1")
    assert (seen.job_id, seen.retry_of) == (job.job_id, BAD_JOB)


def test_several_are_redriven_together_in_one_chain_a_host(weeks: Weeks) -> None:
    weeks.failing |= {"http://a.example/3", "http://c.example/0"}
    weeks.engine.observe()
    weeks.engine.observe()
    weeks.failing.clear()
    letters = [letter.job.job_id for letter in dead_letters(weeks.store, now=weeks.engine.clock.now())]
    assert len(letters) == 3
    done = weeks.redrive(*letters)
    assert [job.link_id for job in done.jobs] == ["link-1", "link-3", "link-5"]
    assert [job.next for job in done.jobs] == ["link-3", None, None]
    run = weeks.engine.observe()
    assert run.expected == 3
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 3}


def test_a_redriven_job_that_fails_again_is_a_letter_of_its_own(weeks: Weeks) -> None:
    weeks.engine.observe()
    weeks.engine.observe()
    (first,) = weeks.redrive(BAD_JOB).jobs
    weeks.engine.observe()
    old, new = dead_letters(weeks.store, now=weeks.engine.clock.now())
    assert (old.redriven_as, new.redriven_as) == (new.job, None)
    (second,) = weeks.redrive(new.job.job_id).jobs
    assert (second.run_id, second.retry_of, second.sequence) == (f"{RUN_ID}~retry-3", BAD_JOB, first.sequence + 1)


def refused(weeks: Weeks, job_id: str = BAD_JOB) -> str:
    done = weeks.redrive(job_id)
    assert done.jobs == []
    return done.refused[job_id]


def change_link(weeks: Weeks, **fields: object) -> None:
    link = weeks.store.get_link("link-1")
    assert link is not None
    changed = replace(link, config_version=link.config_version + 1, **fields)  # type: ignore[arg-type]
    weeks.store.save_link(changed, replaces=link)


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (lambda weeks: weeks.redrive(BAD_JOB), "was redriven already, as 2026-09-28T09:00:00Z~retry-2:link-1"),
        (lambda weeks: change_link(weeks, marker="other"), "was changed since"),
        (lambda weeks: change_link(weeks, retired_at=after(hours=1)), "is retired"),
        (lambda weeks: weeks.engine.clock.advance(timedelta(hours=24)), "began more than 24 hours ago"),
    ],
)
def test_what_cannot_be_redriven_says_why_and_changes_nothing(
    weeks: Weeks, meanwhile: Callable[[Weeks], object], why: str
) -> None:
    weeks.engine.observe()
    weeks.engine.observe()
    meanwhile(weeks)
    runs = [run.run_id for run in weeks.store.runs()]
    assert why in refused(weeks)
    assert [run.run_id for run in weeks.store.runs()] == runs


def test_only_what_was_given_up_in_a_closed_week_is_redriven(weeks: Weeks) -> None:
    assert "is no job of a run" in refused(weeks, "7:link-1")
    weeks.engine.observe()
    assert "was not given up: it is done" in refused(weeks, f"{RUN_ID}:link-0")
    assert f"has to wait until run {RETRY_ID} is closed" in refused(weeks)


def test_a_week_has_three_retry_runs_redrives_included(weeks: Weeks) -> None:
    weeks.engine.observe()
    job_id = BAD_JOB
    for _ in range(2):
        weeks.engine.observe()
        (job,) = weeks.redrive(job_id).jobs
        job_id = job.job_id
    weeks.engine.observe()
    assert "had all its retry runs; check it by hand" in refused(weeks, job_id)


def test_a_redrive_takes_its_letter_out_of_a_queue_that_keeps_them(weeks: Weeks) -> None:
    store, clock = weeks.store, weeks.engine.clock
    queue = MemoryQueue(clock, max_receives=1)
    run = begin_week(store, MONDAY, now=clock.now())
    head, _ = next(due_heads(store, run.run_id, now=clock.now()))
    queue.send([head.message])
    queue.receive()
    clock.advance(timedelta(seconds=181))
    list(settle_dead_letters(store, queue, now=clock.now(), keep=True))
    weeks.failing.clear()
    weeks.engine.observe()
    weeks.engine.observe()
    done = redrive(store, [head.job_id], now=clock.now(), queue=queue)
    assert len(done.jobs) == 1
    assert queue.dead_letters() == []


def test_letters_are_listed_for_fourteen_days(weeks: Weeks) -> None:
    weeks.engine.observe()
    assert len(list(dead_letters(weeks.store, now=MONDAY + timedelta(days=14)))) == 1
    assert list(dead_letters(weeks.store, now=MONDAY + timedelta(days=14, seconds=1))) == []
