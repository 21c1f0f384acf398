"""SPEC 15's rows about recovery in the cloud, played with the functions as released on emulated tables and queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.runs import JobStatus, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, format_seconds, week_start
from linkwatch_pipeline.use_cases.work_on_queue import begin_on_queue
from linkwatch_pipeline_tests.builders import a_link
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.patient_clients import patient_clients
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.cloud.visited_world import HeldPage, VisitedWorld, visited_world
from linkwatch_pipeline_tests.deploy.templates import read_template, resources
from linkwatch_pipeline_tests.entrypoints.functions import Functions, functions_on
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.world.scripts import Script

NOW = SystemClock().now()
MONDAY = week_start(NOW) + WEEK  # the next one, so that every moment of its week can be reached by moving on
RUN_ID = weekly_run_id(MONDAY)
HELD = HeldPage()
SITES: dict[str, Mapping[str, Script]] = {
    "docs.example.com": {"/gone": 404},
    "slow.example.com": {"/gone": HELD},
    **{f"h{n}.example.com": {"/ok": 200} for n in range(3)},
}
DEAD_LETTER_ALARM = resources(read_template("foundation"), "AWS::CloudWatch::Alarm")["DeadLetterAlarm"]
LATE_RUN_ALARM = resources(read_template("application"), "AWS::CloudWatch::Alarm")["LateRunAlarm"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisitedWorld]:
    with visited_world(SITES, tmp_path_factory.mktemp("world")) as opened:
        yield opened


@pytest.fixture
def functions(ministack: Cloud, world: VisitedWorld) -> Iterator[Functions]:
    with patient_clients(), functions_on(ministack, world) as made:
        go_to(made, MONDAY)
        yield made


@pytest.fixture
def store(functions: Functions) -> Iterator[DynamoStore]:
    opened = store_on(functions.cloud.client("dynamodb"), functions.table, clock=functions.clock)
    yield opened
    opened.close()


def go_to(functions: Functions, moment: datetime) -> None:
    functions.clock.offset = moment - SystemClock().now()


def register(store: DynamoStore, *urls: str) -> None:
    store.put_owner(Owner(team="docs-team", address="docs@example.com"))
    for number, url in enumerate(urls):
        link = a_link(f"link-{number}", url, active_since=NOW - timedelta(days=30))
        store.save_link(link, replaces=None)


def dispatch(functions: Functions) -> dict[str, Any]:
    return functions.call("dispatch", {"action": "dispatch", "scheduled_time": format_seconds(MONDAY)})


def tick(functions: Functions) -> int:
    return int(functions.call("dispatch", {"action": "tick"})["sent"])


def work(functions: Functions) -> None:
    """Check what is visible, as the mapping does."""
    for record in functions.waiting():
        functions.acknowledge([record], functions.call("check", {"Records": [record]}))


def fail_until_given_up(functions: Functions) -> int:
    """Let the function be one that is not there, as after a bad deployment; how often its messages were delivered."""
    functions.hide_messages_for(0)
    deliveries = 0
    while records := functions.waiting():
        with pytest.raises(AttributeError):
            functions.call("not_there", {"Records": records})
        deliveries += 1
    functions.hide_messages_for(180)
    return deliveries


def would_alarm(alarm: dict[str, Any], value: float) -> bool:
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    return bool(value > alarm["Threshold"])


def metric(functions: Functions, name: str) -> float:
    """The latest value that was put."""
    now = functions.clock.now()
    answer = functions.cloud.client("cloudwatch").get_metric_statistics(
        Namespace=functions.namespace, MetricName=name, StartTime=now - timedelta(minutes=2),
        EndTime=now + timedelta(minutes=2), Period=3600, Statistics=["Maximum"],
    )  # fmt: skip
    return max(float(point["Maximum"]) for point in answer["Datapoints"])


def test_a_message_that_comes_again_between_commit_and_acknowledgement_changes_nothing(
    functions: Functions, store: DynamoStore, world: VisitedWorld
) -> None:
    register(store, "http://docs.example.com/gone")
    dispatch(functions)
    functions.hide_messages_for(0)  # the function ends after its commit, and nobody acknowledges
    first = functions.waiting()
    functions.call("check", {"Records": first})
    asked = world.visits
    functions.hide_messages_for(180)
    again = functions.waiting()
    assert [record["messageId"] for record in again] == [record["messageId"] for record in first]
    functions.acknowledge(again, functions.call("check", {"Records": again}))
    assert world.visits == asked
    assert len(list(store.observations())) == len(list(store.transitions())) == len(list(store.notices())) == 1
    assert (functions.waiting(), functions.depth(functions.dead_letter_url)) == ([], 0)


def test_two_workers_with_the_same_job_at_the_same_moment_make_one_visit_and_one_change(
    functions: Functions, store: DynamoStore, world: VisitedWorld
) -> None:
    register(store, "http://slow.example.com/gone")
    dispatch(functions)
    records, asked = functions.waiting(), world.visits
    functions.call("health")  # the process is warm
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(functions.call, "check", {"Records": records})
        HELD.wait_for_visitor()
        assert functions.call("check", {"Records": records}) == {"batchItemFailures": []}
        HELD.let_go()
        assert first.result() == {"batchItemFailures": []}
    assert world.visits == asked + 1
    assert len(list(store.observations())) == len(list(store.transitions())) == 1


def test_of_two_workers_that_both_visited_the_first_to_commit_is_right_and_the_other_is_content(
    functions: Functions, store: DynamoStore, world: VisitedWorld
) -> None:
    register(store, "http://slow.example.com/gone")
    dispatch(functions)
    records, asked = functions.waiting(), world.visits
    functions.call("health")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(functions.call, "check", {"Records": records})
        HELD.wait_for_visitor()
        store.void_leases(
            token_prefix="lambda", now=NOW - timedelta(days=1), cooldown=timedelta(0)
        )  # as if it were dead
        second = pool.submit(functions.call, "check", {"Records": records})
        HELD.wait_for_visitor()
        HELD.let_go()
        assert [one.result() for one in (first, second)] == [{"batchItemFailures": []}] * 2
    assert world.visits == asked + 2
    assert len(list(store.observations())) == len(list(store.transitions())) == 1
    (chain,) = store.chains(RUN_ID)
    assert (chain.remaining, sum(chain.counts.values())) == (0, 1)


def test_a_poisoned_message_becomes_a_dead_letter_alarms_and_comes_back_by_a_redrive(
    functions: Functions, store: DynamoStore, terminal: Terminal
) -> None:
    register(store, "http://docs.example.com/gone")
    functions.clock.offset = timedelta(0)  # the command line goes by the machine's clock
    parts, began = functions.app(), functions.clock.now().replace(microsecond=0)
    run = begin_on_queue(store, parts.shared_queue, began, pace=parts.pace, now=began)
    assert fail_until_given_up(functions) == 5
    assert would_alarm(DEAD_LETTER_ALARM, functions.depth(functions.dead_letter_url))
    tick(functions)  # ends the job, and closes the run with it
    job_id = f"{run.run_id}:link-0"
    (listed,) = terminal.fine("dead-letters", "--json").document
    assert (listed["job_id"], listed["status"], listed["reason"]) == (job_id, "abandoned", "dead_letter")
    assert would_alarm(DEAD_LETTER_ALARM, functions.depth(functions.dead_letter_url))  # as long as nobody has looked
    retry = f"{run.run_id}~retry-1"
    assert terminal.fine("dead-letters", "--redrive", job_id).out == (
        f"redriven: {job_id} as {retry}:link-0\nthe next tick sends those of {retry}\n"
    )
    assert not would_alarm(DEAD_LETTER_ALARM, functions.depth(functions.dead_letter_url))
    assert tick(functions) == 1
    work(functions)
    tick(functions)
    assert [(job.status, job.retry_of) for job in store.jobs(retry)] == [(JobStatus.DONE, job_id)]
    assert len(list(store.observations())) == len(list(store.transitions())) == 1
    assert not list(store.runs(open_only=True))


def test_a_paused_schedule_raises_the_late_alarm_and_a_late_start_of_the_week_ends_it(
    functions: Functions, store: DynamoStore
) -> None:
    register(store, "http://docs.example.com/gone")
    assert (LATE_RUN_ALARM["MetricName"], LATE_RUN_ALARM["Statistic"]) == ("RunLate", "Maximum")
    go_to(functions, MONDAY + timedelta(minutes=34))  # the schedule is off; the check of health has its own
    assert functions.call("health")["healthy"] is False
    assert would_alarm(LATE_RUN_ALARM, metric(functions, "RunLate"))
    assert "run_missing" in [line["code"] for line in functions.lines if line["message"] == "finding"]
    go_to(functions, MONDAY + timedelta(minutes=50))
    assert dispatch(functions)["run_id"] == RUN_ID  # switched on again, or called by hand: the same week
    assert functions.call("health")["healthy"] is False
    assert would_alarm(LATE_RUN_ALARM, metric(functions, "RunLate"))
    work(functions)
    tick(functions)
    go_to(functions, MONDAY + timedelta(minutes=55))
    functions.call("health")
    assert not would_alarm(LATE_RUN_ALARM, metric(functions, "RunLate"))
    (run,) = store.runs()
    assert run.state.is_over


def test_a_queue_that_is_lost_in_mid_run_is_filled_again_by_the_next_tick(
    functions: Functions, store: DynamoStore
) -> None:
    register(store, *(f"http://h{n}.example.com/ok" for n in range(3)))
    dispatch(functions)
    (record, *_) = functions.waiting()
    functions.acknowledge([record], functions.call("check", {"Records": [record]}))
    functions.sqs.purge_queue(QueueUrl=functions.queue_url)
    assert functions.waiting() == []
    go_to(functions, MONDAY + timedelta(minutes=2))
    assert tick(functions) == 0  # they may still be on their way
    go_to(functions, MONDAY + timedelta(minutes=5))
    assert tick(functions) == 2
    work(functions)
    tick(functions)
    (run,) = store.runs()
    assert run.totals is not None
    assert (run.state.value, dict(run.totals.by_end)) == ("closed", {"reachable": 3})
    assert len(list(store.observations())) == 3
