"""The five functions on an emulated table, queue and metrics, visiting a world on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.store.dynamodb import CLIENT, DynamoStore
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.runs import CheckJob, JobStatus, weekly_run_id
from linkwatch_pipeline.domain.timestamps import format_seconds, week_start
from linkwatch_pipeline_tests.builders import a_link
from linkwatch_pipeline_tests.cloud.calls import Call, Fault
from linkwatch_pipeline_tests.cloud.fault_proxy import fault_proxy
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.entrypoints.functions import Functions, functions_on
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world import WorldProcess
from linkwatch_pipeline_tests.world.ses_server import SesServer

WEEK = week_start(SystemClock().now())
NOW = WEEK + timedelta(days=1)  # no week begins meanwhile
RUN_ID = weekly_run_id(WEEK)
SITES: dict[str, dict[str, Any]] = {
    "docs.example.com": {"pages": {"/ok": 200, "/gone": 404}},
    "api.example.com": {"pages": {"/ok?token=s3cr3tvalue": 200}},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorldProcess]:
    with WorldProcess(SITES, tmp_path_factory.mktemp("world")) as opened:
        yield opened


def on_tuesday(
    cloud: Cloud, world: WorldProcess | None = None, /, **settings: str
) -> AbstractContextManager[Functions]:
    """Functions whose clock begins at NOW."""
    return functions_on(cloud, world, StoryClock(SystemClock(), NOW), **settings)


@pytest.fixture
def functions(ministack: Cloud, world: WorldProcess) -> Iterator[Functions]:
    with on_tuesday(ministack, world) as made:
        yield made


@pytest.fixture
def store(functions: Functions) -> Iterator[DynamoStore]:
    opened = store_on(functions.cloud.client("dynamodb"), functions.table, clock=SystemClock())
    yield opened
    opened.close()


def register(store: DynamoStore, *urls: str) -> None:
    store.put_owner(Owner(team="docs-team", address="docs@example.com"))
    for number, url in enumerate(urls):
        link = a_link(f"link-{number}", url, active_since=WEEK - timedelta(days=1))
        store.save_link(link, replaces=None)


def dispatch(functions: Functions) -> dict[str, Any]:
    return functions.call("dispatch", {"action": "dispatch", "scheduled_time": format_seconds(WEEK)})


def work(functions: Functions) -> list[dict[str, Any]]:
    """Check what is visible, as the mapping does; the records."""
    records = functions.waiting()
    for record in records:
        functions.acknowledge([record], functions.call("check", {"Records": [record]}))
    return records


class TestDispatch:
    def test_the_scheduled_time_is_the_run_and_a_second_trigger_the_same(
        self, functions: Functions, store: DynamoStore
    ) -> None:
        register(store, "http://docs.example.com/ok", "http://docs.example.com/gone")
        told = dispatch(functions)
        assert told == {"run_id": RUN_ID, "state": "open", "expected": 2}
        assert dispatch(functions) == told
        assert len(functions.waiting()) == 1  # one host, one message
        assert [run.run_id for run in store.runs()] == [RUN_ID]

    @pytest.mark.parametrize("late", [timedelta(0), timedelta(minutes=4), timedelta(days=2)])
    def test_a_late_trigger_is_the_same_run(self, functions: Functions, store: DynamoStore, late: timedelta) -> None:
        register(store, "http://docs.example.com/ok")
        functions.clock.offset = timedelta(days=1)
        when = WEEK + late
        told = functions.call("dispatch", {"action": "dispatch", "scheduled_time": format_seconds(when)})
        assert told["run_id"] == RUN_ID

    @pytest.mark.parametrize(
        "event", [{}, {"action": "begin"}, {"action": "dispatch"}, {"action": "dispatch", "scheduled_time": "<aws>"}]
    )
    def test_anything_else_is_refused_and_says_what_to_give(self, functions: Functions, event: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match=r'Give \{"action"'):
            functions.call("dispatch", event)
        (line,) = functions.lines
        assert (line["message"], line["error"], line["request_id"]) == ("function failed", "InvalidInput", "request-1")

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            ("1970-01-01T00:00:00Z", "the week 1969-12-29 began more than 390 days ago"),
            ("0001-01-01T00:00:00Z", "is no time in UTC"),
            ("9999-12-31T23:59:59Z", "9999-12-27 has not begun"),
        ],
    )
    def test_a_time_of_no_week_that_could_be_run_leaves_nothing(
        self, functions: Functions, store: DynamoStore, when: str, problem: str
    ) -> None:
        with pytest.raises(InvalidInput, match=f"^scheduled_time: .*{problem}"):
            functions.call("dispatch", {"action": "dispatch", "scheduled_time": when})
        assert list(store.runs()) == []

    def test_what_does_not_fit_into_its_time_is_left_to_the_next_tick(
        self, functions: Functions, store: DynamoStore
    ) -> None:
        register(store, "http://docs.example.com/ok")
        functions.context.remaining_ms = 100_000
        assert dispatch(functions) == {"run_id": RUN_ID, "state": "dispatching", "expected": None}
        assert functions.call("dispatch", {"action": "tick"}) == {"sent": 0}
        functions.context.remaining_ms = None
        assert functions.call("dispatch", {"action": "tick"}) == {"sent": 1}

    def test_without_an_open_run_the_tick_is_idle(self, functions: Functions) -> None:
        assert functions.call("dispatch", {"action": "tick"}) == {"sent": 0}

    def test_the_tick_closes_what_is_done_and_sends_what_was_lost(
        self, functions: Functions, store: DynamoStore
    ) -> None:
        register(store, "http://docs.example.com/ok")
        dispatch(functions)
        assert functions.call("dispatch", {"action": "tick"}) == {"sent": 0}
        work(functions)
        assert functions.call("dispatch", {"action": "tick"}) == {"sent": 0}
        (run,) = store.runs()
        assert run.state.is_over
        assert run.totals is not None
        assert dict(run.totals.by_end) == {"reachable": 1}


class TestCheck:
    def test_a_week_is_checked_to_its_end_and_every_line_says_what_and_how(
        self, functions: Functions, store: DynamoStore
    ) -> None:
        register(store, "http://docs.example.com/gone", "http://api.example.com/ok?token=s3cr3tvalue")
        dispatch(functions)
        assert len(work(functions)) == 2
        assert {link.id: link.state.value for link in store.links()} == {"link-0": "broken", "link-1": "reachable"}
        checked = [line for line in functions.lines if line["message"] == "link checked"]
        assert [(line["link_id"], line["outcome"], line["reason"]) for line in checked] in (
            [("link-0", "broken", "gone"), ("link-1", "reachable", None)],
            [("link-1", "reachable", None), ("link-0", "broken", "gone")],
        )
        for line in checked:
            assert line["run_id"] == RUN_ID
            assert line["job_id"] == f"{RUN_ID}:{line['link_id']}"
            assert line["duration_ms"] >= 0
            assert line["request_id"] == "request-1"
        assert "s3cr3tvalue" not in functions.log.getvalue()

    def test_redelivery_after_the_commit_asks_nobody_and_is_acknowledged(
        self, functions: Functions, store: DynamoStore, world: WorldProcess
    ) -> None:
        register(store, "http://docs.example.com/gone")
        dispatch(functions)
        records = functions.waiting()
        functions.call("check", {"Records": records})
        asked = len(world.log.hits)
        assert functions.call("check", {"Records": records}) == {"batchItemFailures": []}
        assert len(world.log.hits) == asked
        assert len(list(store.observations())) == len(list(store.transitions())) == 1

    def test_only_what_failed_comes_back(self, functions: Functions, store: DynamoStore) -> None:
        register(store, "http://docs.example.com/ok")
        dispatch(functions)
        bad = {"messageId": "bad", "receiptHandle": "h", "body": '{"url": "https://secret.example.com/"}'}
        deep = {"messageId": "deep", "receiptHandle": "h", "body": "[" * 20_000}
        assert functions.call("check", {"Records": [bad, deep, *functions.waiting()]}) == {
            "batchItemFailures": [{"itemIdentifier": "bad"}, {"itemIdentifier": "deep"}]
        }
        assert len(list(store.observations())) == 1
        assert "secret" not in functions.log.getvalue()

    def test_a_message_of_an_unknown_or_closed_run_is_refused_and_acknowledged(
        self, functions: Functions, store: DynamoStore, world: WorldProcess
    ) -> None:
        register(store, "http://docs.example.com/ok")
        dispatch(functions)
        job = store.get_job(RUN_ID, "link-0")
        assert job is not None
        store.end_job(job, status=JobStatus.EXPIRED, reason=_stalled())
        functions.call("dispatch", {"action": "tick"})
        asked = len(world.log.hits)
        other = CheckJob(job_id=f"{RUN_ID}:nobody", run_id=RUN_ID, link_id="nobody", sequence=0, config_version=1)
        records = [functions.record_of(job.message), functions.record_of(other)]
        assert functions.call("check", {"Records": records}) == {"batchItemFailures": []}
        assert len(world.log.hits) == asked

    @pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.SILENT_BEFORE])
    def test_it_ends_in_time_and_in_order_while_the_table_serves_nobody(
        self, ministack: Cloud, world: WorldProcess, fault: Fault, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = VirtualClock(NOW)  # passes while the function waits, and however busy the machine is, not beside that
        monkeypatch.setattr("linkwatch_pipeline.bootstrap.aws.wait", clock.advance)

        def serve_nobody(call: Call) -> Fault | None:
            if call.service != "DynamoDB":
                return None
            if fault is Fault.SILENT_BEFORE:
                clock.advance(timedelta(seconds=CLIENT.read_timeout))
            return fault

        with fault_proxy(ministack) as proxy, functions_on(proxy.cloud, world, clock) as functions:
            store = store_on(ministack.client("dynamodb"), functions.table, clock=SystemClock())
            register(store, "http://docs.example.com/gone")
            dispatch(functions)
            [record] = functions.waiting()
            functions.context.remaining_ms = 8_000
            proxy.begin(serve_nobody)
            before = clock.monotonic()
            assert functions.call("check", {"Records": [record]}) == {"batchItemFailures": []}
            assert 0 < clock.monotonic() - before < 7
            assert functions.depth(functions.queue_url, "ApproximateNumberOfMessagesDelayed") == 1
            assert [job.deaths for job in store.jobs(RUN_ID)] == [0]
            assert list(store.hosts()) == []
            assert "message postponed" in functions.log.getvalue()
            store.close()


def _stalled() -> Any:
    from linkwatch_pipeline.domain.reasons import Reason

    return Reason.STALLED


class TestNotify:
    def test_a_mail_goes_out_through_ses_once(
        self, ministack: Cloud, world: WorldProcess, ses_server: SesServer
    ) -> None:
        ses_server.accepted.clear()
        settings = {
            "LINKWATCH_MAIL": "ses",
            "LINKWATCH_MAIL_FROM": ses_server.sender,
            "LINKWATCH_SES_CONFIGURATION_SET": ses_server.configuration_set,
            "AWS_ENDPOINT_URL_SESV2": ses_server.url,
        }
        with on_tuesday(ministack, world, **settings) as functions:
            store = store_on(ministack.client("dynamodb"), functions.table, clock=SystemClock())
            register(store, "http://docs.example.com/gone")
            dispatch(functions)
            work(functions)
            functions.call("dispatch", {"action": "tick"})  # closes the run, which lets its notices go
            functions.context.remaining_ms = 15_000
            told = functions.call("notify")
            assert (told["sent"], told["waiting"]) == (0, 1)
            functions.context.remaining_ms = 300_000
            assert functions.call("notify")["sent"] == 1
            assert functions.call("notify")["sent"] == 0
            (accepted,) = ses_server.accepted
            (notice,) = store.notices()
            event = {
                "eventType": "Delivery",
                "mail": {
                    "timestamp": format_seconds(NOW),
                    "messageId": notice.provider_id,
                    "source": ses_server.sender,
                    "destination": ["docs@example.com"],
                    "tags": {name: [value] for name, value in accepted.tags.items()},
                },
                "delivery": {"timestamp": format_seconds(NOW), "recipients": ["docs@example.com"]},
            }
            records = [
                {"messageId": "1", "body": json.dumps(event)},
                {"messageId": "2", "body": "no JSON"},
                {"messageId": "3", "body": "Successfully validated SNS topic for Amazon SES event publishing."},
            ]
            told = functions.call("mail_events", {"Records": records})
            assert told == {"batchItemFailures": [{"itemIdentifier": "2"}]}
            assert [n.status.value for n in store.notices()] == ["delivered"]
            store.close()

    def test_without_ses_it_says_what_to_set(self, functions: Functions) -> None:
        with pytest.raises(ConfigurationError, match="LINKWATCH_MAIL"):
            functions.call("notify")


class TestHealth:
    def test_it_publishes_a_late_run_and_a_heartbeat(self, functions: Functions, store: DynamoStore) -> None:
        assert functions.call("health") == {"healthy": True, "findings": 0}
        register(store, "http://docs.example.com/ok")
        told = functions.call("health")
        assert told["healthy"] is False
        found = [line["code"] for line in functions.lines if line["message"] == "finding"]
        assert found == ["run_missing"]
        assert _last(functions, "RunLate") == 1
        assert _last(functions, "Heartbeat") == 1

    def test_a_work_queue_that_gives_nothing_up_is_critical(self, functions: Functions) -> None:
        functions.sqs.set_queue_attributes(QueueUrl=functions.queue_url, Attributes={"RedrivePolicy": ""})
        assert functions.call("health") == {"healthy": False, "findings": 1}
        (line,) = [line for line in functions.lines if line["message"] == "finding"]
        assert (line["code"], line["subject"]) == ("queue_broken", "queue")
        assert _last(functions, "CriticalFindings") == 1

    def test_it_only_reads_even_what_a_dead_writer_left_and_a_run_that_is_to_be_ruled_on(
        self, ministack: Cloud, world: WorldProcess
    ) -> None:
        with fault_proxy(ministack) as proxy, on_tuesday(proxy.cloud, world) as functions:
            store = store_on(ministack.client("dynamodb"), functions.table, clock=SystemClock())
            register(store, "http://docs.example.com/gone")
            dispatch(functions)
            work(functions)
            functions.call("dispatch", {"action": "tick"})
            leave_a_registry_half_written(ministack, functions.table)
            proxy.begin()
            told = functions.call("health")
            asked = {call.operation for call in proxy.calls} - {"PutMetricData"}
            assert asked <= {"GetItem", "BatchGetItem", "Query", "GetQueueAttributes"}
            assert told["healthy"] is True
            assert [run.ruling for run in store.runs()] == [None]
            store.close()


def leave_a_registry_half_written(cloud: Cloud, table: str) -> None:
    """As a process does that dies after its journal was committed and before its links were settled."""
    client = cloud.client("dynamodb")

    def die(params: dict[str, Any], **_: Any) -> None:
        raise KeyboardInterrupt

    def die_after_commit(params: dict[str, Any], **_: Any) -> None:
        if params["Item"].get("state") == {"S": "committed"}:
            for name in ("GetItem", "BatchGetItem", "TransactWriteItems", "BatchWriteItem"):
                client.meta.events.register(f"before-parameter-build.dynamodb.{name}", die)

    client.meta.events.register("before-parameter-build.dynamodb.PutItem", die_after_commit)
    links = [a_link(f"half-{n}", f"http://h{n}.example.com/", retired_at=NOW) for n in range(40)]
    with pytest.raises(KeyboardInterrupt):
        store_on(client, table, clock=SystemClock()).save_registry(links=[(link, None) for link in links])


def _last(functions: Functions, name: str) -> float:
    answer = functions.cloud.client("cloudwatch").get_metric_statistics(
        Namespace=functions.namespace, MetricName=name, StartTime=NOW - timedelta(hours=1),
        EndTime=NOW + timedelta(hours=1), Period=7200, Statistics=["Maximum"],
    )  # fmt: skip
    return max(float(point["Maximum"]) for point in answer["Datapoints"])


AGREED = {"docs.example.com": {"visits": 2, "agreed_with": "Ada, docs team, 2026-11-02"}}


class TestAllowances:
    def test_a_host_that_agreed_is_dispatched_into_slots_that_are_checked_side_by_side(
        self, ministack: Cloud, world: WorldProcess
    ) -> None:
        with on_tuesday(ministack, world, LINKWATCH_ALLOWANCES=json.dumps(AGREED)) as functions:
            store = store_on(ministack.client("dynamodb"), functions.table, clock=SystemClock())
            register(store, *(f"http://docs.example.com/ok?{n}" for n in range(7)))
            dispatch(functions)
            slots = {chain.host: chain.total for chain in store.chains(RUN_ID)}
            assert (set(slots), sum(slots.values())) == ({"docs.example.com", "docs.example.com#2"}, 7)
            assert len(work(functions)) == 2
            assert all(store.get_host(slot) for slot in slots)
            store.close()

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("2", r"LINKWATCH_ALLOWANCES must be a table.* JSON"),
            ("{", r"LINKWATCH_ALLOWANCES must be a table.* JSON"),
            ('{"docs.example.com": {"visits": 2}}', "LINKWATCH_ALLOWANCES: 'docs.example.com' has no agreed_with"),
        ],
    )
    def test_without_a_word_on_who_agreed_it_refuses_to_start(self, ministack: Cloud, value: str, words: str) -> None:
        with on_tuesday(ministack, LINKWATCH_ALLOWANCES=value) as functions:
            for function in ("dispatch", "check"):
                with pytest.raises(ConfigurationError, match=words):
                    functions.call(function)


class TestProcess:
    def test_without_its_settings_it_refuses_to_start(self, ministack: Cloud, world: WorldProcess) -> None:
        with on_tuesday(ministack, world, LINKWATCH_CONTACT="") as functions:
            with pytest.raises(ConfigurationError, match="LINKWATCH_CONTACT must be set"):
                functions.call("health")

    def test_an_endpoint_that_is_not_amazon_s_is_refused(self, ministack: Cloud, world: WorldProcess) -> None:
        with on_tuesday(ministack, world, LINKWATCH_ALLOW_ENDPOINT="false") as functions:
            with pytest.raises(ConfigurationError, match="not Amazon's"):
                functions.call("health")
