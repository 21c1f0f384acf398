"""`linkwatch dead-letters` and `enqueue`: a list, a redrive, and clear words when there is nothing to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.queue.messages import write_message
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import CheckJob, JobStatus, count_chains, weekly_run_id
from linkwatch_pipeline_tests.builders import a_link, a_run, dispatched
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.shared_worker import Shared, make_shared
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

URLS = {"first": "https://a.example/1", "second": "https://a.example/2", "third": "https://b.example/"}


def begin(terminal: Terminal, *, given_up: tuple[str, ...], began_before: timedelta) -> str:
    """A week in the terminal's home whose jobs were given up, closed unless there are none; its run id."""
    terminal.fine("links")
    at = (SystemClock().now() - began_before).replace(microsecond=0)
    store = SqliteStore.open(terminal.home / "linkwatch.sqlite3")
    try:
        since = datetime(2026, 1, 1, tzinfo=UTC)
        store.save_registry(links=[(a_link(name, url, active_since=since), None) for name, url in URLS.items()])
        run = a_run(at)
        for job in dispatched(store, list(store.links()), run=run):
            if job.link_id in given_up:
                store.end_job(job, status=JobStatus.ABANDONED, reason=Reason.DEAD_LETTER)
            elif given_up:
                store.end_job(job, status=JobStatus.CANCELLED, reason=Reason.RETIRED)
        if given_up:
            store.close_run(run.run_id, totals=count_chains(store.chains(run.run_id)), at=at)
    finally:
        store.close()
    return weekly_run_id(at)


@pytest.fixture
def run_id(terminal: Terminal) -> str:
    """The id of a run that closed just now, with two jobs given up."""
    return begin(terminal, given_up=("first", "third"), began_before=timedelta(minutes=5))


def test_what_was_given_up_is_listed_with_its_reason(terminal: Terminal, run_id: str) -> None:
    assert terminal.fine("dead-letters").out.splitlines()[1:] == [
        f"{run_id}:first  a.example  dead_letter  -",
        f"{run_id}:third  b.example  dead_letter  -",
    ]
    document = terminal.fine("dead-letters", "--json").document
    assert [(entry["job_id"], entry["status"], entry["redriven_as"]) for entry in document] == [
        (f"{run_id}:first", "abandoned", None),
        (f"{run_id}:third", "abandoned", None),
    ]


def test_one_is_redriven_and_the_other_stays(terminal: Terminal, run_id: str) -> None:
    retry = f"{run_id}~retry-1"
    assert terminal.fine("dead-letters", "--redrive", f"{run_id}:third").out == (
        f"redriven: {run_id}:third as {retry}:third\n"
        f"'linkwatch resume {retry}' checks them, if no other process works on runs\n"
    )
    listed = terminal.fine("dead-letters", "--json").document
    assert [entry["redriven_as"] for entry in listed] == [None, f"{retry}:third"]
    assert "was redriven already" in terminal.refused("dead-letters", "--redrive", f"{run_id}:third")
    summary = terminal.fine("inspect", "--run", retry, "--json").document["run"]
    assert (summary["state"], summary["expected"], summary["retry_of"]) == ("open", 1, run_id)


def test_all_are_redriven_in_one_run_and_then_there_is_nothing_left(terminal: Terminal, run_id: str) -> None:
    document = terminal.fine("dead-letters", "--all", "--json").document
    assert [job["job_id"] for job in document["jobs"]] == [f"{run_id}~retry-1:first", f"{run_id}~retry-1:third"]
    assert document["refused"] == []
    assert terminal.fine("dead-letters", "--all").out == "there is nothing to redrive\n"


def test_all_but_the_changed_ones_are_redriven_and_each_of_those_says_why(terminal: Terminal, run_id: str) -> None:
    terminal.fine("retire", "first")
    said = terminal.run("dead-letters", "--all")
    assert said.code == 1
    assert said.err == f"linkwatch: {run_id}:first belongs to a link that is retired.\n"
    assert f"redriven: {run_id}:third" in said.out


def test_after_a_day_only_a_check_by_hand_is_left(terminal: Terminal) -> None:
    run_id = begin(terminal, given_up=("first",), began_before=timedelta(hours=25))
    assert "check it by hand" in terminal.refused("dead-letters", "--redrive", f"{run_id}:first")


def test_redriving_something_else_is_refused_in_one_sentence(terminal: Terminal) -> None:
    assert "is no job of a run" in terminal.refused("dead-letters", "--redrive", "nonsense")
    assert "Give one of" in terminal.refused("dead-letters", "--redrive", "x:y", "--all")


def test_enqueue_names_the_pending_job_and_who_will_do_it(terminal: Terminal) -> None:
    run_id = begin(terminal, given_up=(), began_before=timedelta(minutes=5))
    said = terminal.fine("enqueue", "second")
    assert said.out.startswith(f"pending: {run_id}:second. ")
    assert f"'linkwatch resume {run_id}'" in said.out


def test_enqueue_refuses_what_has_no_pending_job(terminal: Terminal, run_id: str) -> None:
    assert "no link 'nobody'" in terminal.refused("enqueue", "nobody")
    assert "'linkwatch check first'" in terminal.refused("enqueue", "first")


@pytest.fixture
def shared(ministack: Cloud, monkeypatch: pytest.MonkeyPatch) -> Shared:
    made = make_shared(ministack)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


def send_dead(cloud: Cloud, shared: Shared, *bodies: str) -> list[str]:
    """Put texts among the dead letters; their message ids."""
    sqs = cloud.client("sqs")
    return [sqs.send_message(QueueUrl=shared.dead_letter_url, MessageBody=body)["MessageId"] for body in bodies]


UNKNOWN = CheckJob(job_id="elsewhere:guide", run_id="elsewhere", link_id="guide", sequence=1, config_version=1)


def test_what_no_redrive_can_help_is_listed_and_thrown_away(
    terminal: Terminal, ministack: Cloud, shared: Shared
) -> None:
    garbage, other, deep = send_dead(ministack, shared, "not ours\x0a[31m", '{"password": "hunter2"}', "[" * 20_000)
    send_dead(ministack, shared, write_message(UNKNOWN))
    shown = terminal.fine("dead-letters").out
    assert shown.splitlines()[0].startswith("JOB")
    assert f"{garbage}  a message is not JSON" in shown
    assert "not ours\\n[31m" in shown
    assert "hunter2" not in shown
    assert "elsewhere:guide" in shown
    listed = {entry["job_id"]: entry for entry in terminal.fine("dead-letters", "--json").document}
    assert set(listed) == {garbage, other, deep, "elsewhere:guide"}
    assert (listed[garbage]["problem"], listed[garbage]["status"]) == ("a message is not JSON", None)
    assert "nothing to redrive" in terminal.fine("dead-letters", "--all").out
    assert terminal.fine("dead-letters", "--discard", garbage).out == f"discarded: {garbage}\n"
    assert "is not in the queue" in terminal.refused("dead-letters", "--discard", garbage)
    discarded = terminal.fine("dead-letters", "--discard-strays", "--json").document["discarded"]
    assert set(discarded) == {other, deep, "elsewhere:guide"}
    assert terminal.fine("dead-letters", "--json").document == []
    assert "nothing to discard" in terminal.fine("dead-letters", "--discard-strays").out


def test_a_letter_that_waits_for_the_tick_and_one_that_never_can_be_checked_say_so(
    terminal: Terminal, ministack: Cloud, shared: Shared
) -> None:
    terminal.fine("links")
    store = store_on(ministack.client("dynamodb"), shared.table, clock=SystemClock())
    link = a_link("guide", URLS["first"])
    store.save_link(link, replaces=None)
    [job] = dispatched(store, [link], run=a_run(SystemClock().now().replace(microsecond=0)))
    never = CheckJob(job_id="0:nolink", run_id="", link_id="nolink", sequence=0, config_version=1)
    send_dead(ministack, shared, write_message(job.message), write_message(never))
    jobs, waiting, strays = terminal.fine("dead-letters").out.split("\n\n")
    assert jobs.splitlines() == ["JOB  HOST  REASON  REDRIVEN AS"]
    assert waiting.splitlines()[0].startswith("these wait for the next tick")
    assert job.job_id in waiting
    assert "0:nolink  its link is not known here" in strays
    first, _ = terminal.fine("dead-letters", "--json").document
    assert (first["job_id"], first["status"], first["reason"]) == (job.job_id, "pending", None)
    assert first["problem"] == "its job is pending until the next tick"
    assert "its link is not known here" in terminal.refused("dead-letters", "--redrive", "0:nolink")
    assert "the next tick ends it" in terminal.refused("dead-letters", "--discard", job.job_id)
    assert terminal.fine("dead-letters", "--discard-strays").out == "discarded: 0:nolink\n"
    assert [entry["job_id"] for entry in terminal.fine("dead-letters", "--json").document] == [job.job_id]
    store.close()


@pytest.mark.parametrize("words", [(), ("--discard-strays",)])
def test_live_work_is_not_taken_for_dead_letters(
    terminal: Terminal, ministack: Cloud, shared: Shared, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    sqs, number = ministack.client("sqs"), "ApproximateNumberOfMessages"
    sqs.send_message(QueueUrl=shared.queue_url, MessageBody=write_message(UNKNOWN))
    monkeypatch.setenv("LINKWATCH_DEAD_LETTER_QUEUE_URL", shared.queue_url)
    assert "name the same queue" in terminal.refused("dead-letters", *words)
    answer = sqs.get_queue_attributes(QueueUrl=shared.queue_url, AttributeNames=[number])
    assert answer["Attributes"][number] == "1"


def test_a_home_of_its_own_has_no_letters_to_throw_away(terminal: Terminal) -> None:
    assert "no queue that workers could share" in terminal.refused("dead-letters", "--discard", "x")
    assert "no queue that workers could share" in terminal.refused("dead-letters", "--discard-strays")
    assert "Give one of" in terminal.refused("dead-letters", "--discard", "x", "--all")
