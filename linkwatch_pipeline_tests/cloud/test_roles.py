"""Each role allows what its function or task really calls: the calls are recorded as they are made, on an emulator.

`make aws-local` lets an emulator enforce the roles of the functions, on the paths of a good week. Here rarer ones are
played too, and Dagster's roles are compared, which no emulator holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.queue.messages import write_message
from linkwatch_pipeline.bootstrap import build_app
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.domain.timestamps import format_seconds, week_start
from linkwatch_pipeline_tests.builders import a_link
from linkwatch_pipeline_tests.cloud.calls import Call
from linkwatch_pipeline_tests.cloud.fault_proxy import FaultProxy, fault_proxy
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.patient_clients import patient_clients
from linkwatch_pipeline_tests.cloud.shared_worker import Shared, make_shared, working
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.deploy.templates import Node, as_list, read_template, resources, statements
from linkwatch_pipeline_tests.entrypoints.functions import Functions, functions_on
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.world import WorldProcess
from linkwatch_pipeline_tests.world.ses_server import SesServer

APPLICATION, ECS = read_template("application"), read_template("dagster-ecs")
FUNCTIONS = ("dispatch", "check", "notify", "health", "mail_events")
BUSY = {"status": 429, "headers": {"Retry-After": "1"}}
SITES: dict[str, dict[str, Any]] = {
    "docs.example.com": {"pages": {"/gone": 404, "/later": 200}},
    "busy.example.com": {"pages": {"/busy": BUSY}},
    "never.example.com": {"pages": {"/never": 200}},
}
WEEK = week_start(SystemClock().now())

Allowed = set[tuple[str, str]]
"""Actions, and on what: "table", "work", "dead", "mail events", or "" where it is not a matter of ours."""


def allowed(role: Node) -> Allowed:
    return {
        (action, _place_of(resource))
        for statement in statements(role)
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }


def _place_of(resource: Any) -> str:
    names = {"QueueArn": "work", "DeadLetterQueueArn": "dead", "MailEventsQueueArn": "mail events"}
    if isinstance(resource, dict) and "Ref" in resource:
        return names.get(resource["Ref"], "")
    return "table" if isinstance(resource, dict) and ":table/" in str(resource.get("Fn::Sub")) else ""


def needed(calls: list[Call]) -> Allowed:
    """What Amazon's reference of actions asks for: a batch needs the single action, a transaction each of its own."""
    return {pair for call in calls for pair in _needed_for(call)}


def _needed_for(call: Call) -> Iterator[tuple[str, str]]:
    if call.operation == "TransactWriteItems":
        kinds = {
            "Put": "PutItem",
            "Update": "UpdateItem",
            "Delete": "DeleteItem",
            "ConditionCheck": "ConditionCheckItem",
        }
        yield from ((f"dynamodb:{kinds[kind]}", "table") for item in call.body["TransactItems"] for kind in item)
    elif call.service == "DynamoDB":
        yield f"dynamodb:{call.operation}", "table"
    elif call.service == "AmazonSQS":
        place = "dead" if call.body["QueueUrl"].endswith("-dead") else "work"
        yield f"sqs:{call.operation.removesuffix('Batch')}", place
    else:
        assert call.operation == "PutMetricData"
        yield "cloudwatch:PutMetricData", ""


@pytest.fixture(scope="module")
def asked(ministack: Cloud, ses_server: SesServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Allowed]:
    """What each function needs for a week in which things go wrong, too."""
    seen: dict[str, Allowed] = {name: set() for name in FUNCTIONS}
    with (
        patient_clients(),
        WorldProcess(SITES, tmp_path_factory.mktemp("world")) as world,
        fault_proxy(ministack) as proxy,
        functions_on(proxy.cloud, world, **_mail(ses_server)) as functions,
        closing(store_on(ministack.client("dynamodb"), functions.table, clock=SystemClock())) as store,
    ):

        def play(name: str, event: dict[str, Any] | None = None) -> dict[str, Any]:
            proxy.begin()
            answer = functions.call(name, event)
            seen[name] |= needed(proxy.calls)
            return answer

        functions.clock.offset = begun = WEEK + timedelta(hours=1) - SystemClock().now()  # whatever the day is
        store.put_owner(Owner(team="docs-team", address="docs@example.com"))
        for host, page in [(host, page) for host, site in SITES.items() for page in site["pages"]]:
            link = a_link(page[1:], f"http://{host}{page}", active_since=WEEK - timedelta(days=1))
            store.save_link(link, replaces=None)
        play("dispatch", {"action": "dispatch", "scheduled_time": format_seconds(WEEK)})
        _check_waiting(functions, play)
        _bury(functions, [job.message for job in store.jobs(next(iter(store.runs())).run_id)])
        play("dispatch", {"action": "tick"})
        functions.clock.offset = begun + timedelta(hours=7)  # whatever is left expires, and the run is closed
        play("dispatch", {"action": "tick"})
        assert play("notify")["sent"] == len(ses_server.accepted) == 1
        seen["notify"].add(("ses:SendEmail", ""))
        (notice,) = store.notices()
        mail = {"timestamp": format_seconds(WEEK), "messageId": notice.provider_id, "destination": ["docs@example.com"]}
        event = {"eventType": "Delivery", "mail": mail, "delivery": {"recipients": ["docs@example.com"]}}
        assert play("mail_events", {"Records": [{"messageId": "1", "body": json.dumps(event)}]}) == {
            "batchItemFailures": []
        }
        play("health")
    return seen


def _check_waiting(functions: Functions, play: Callable[..., dict[str, Any]]) -> None:
    """Two of three hosts' messages, as the mapping hands them over; the next of a host waits for the host's rest."""
    records = [record for record in functions.waiting() if "never" not in record["body"]]
    assert len(records) == 2
    for record in records:
        functions.acknowledge([record], play("check", {"Records": [record]}))


def _bury(functions: Functions, jobs: list[CheckJob]) -> None:
    """Let messages be dead letters, whether their jobs are done or not."""
    for job in jobs:
        functions.sqs.send_message(QueueUrl=functions.dead_letter_url, MessageBody=write_message(job))


def test_the_play_comes_by_the_rare_calls(asked: dict[str, Allowed]) -> None:
    assert {("sqs:DeleteMessage", "dead"), ("sqs:ChangeMessageVisibility", "dead")} <= asked["dispatch"]
    assert ("sqs:SendMessage", "work") in asked["check"]
    assert ("ses:SendEmail", "") in asked["notify"]
    assert ("dynamodb:PutItem", "table") in asked["mail_events"]
    assert {("cloudwatch:PutMetricData", ""), ("sqs:GetQueueAttributes", "dead")} <= asked["health"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_s_role_is_enough_for_what_it_calls(name: str, asked: dict[str, Allowed]) -> None:
    role = "".join(part.capitalize() for part in name.split("_")) + "Role"
    assert asked[name] - allowed(resources(APPLICATION, "AWS::IAM::Role")[role]) == set()


@pytest.mark.parametrize(("role", "queue"), [("CheckRole", "work"), ("MailEventsRole", "mail events")])
def test_whoever_is_handed_messages_lets_lambda_take_them(role: str, queue: str) -> None:
    takes = {(f"sqs:{action}", queue) for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")}
    assert takes <= allowed(resources(APPLICATION, "AWS::IAM::Role")[role])


def test_the_roles_of_dagster_are_enough_for_a_run_its_worker_and_its_sensors(
    asked: dict[str, Allowed],
    ministack: Cloud,
    ses_server: SesServer,
    terminal: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = make_shared(ministack)
    with fault_proxy(ministack) as of_run, fault_proxy(ministack) as of_worker, fault_proxy(ministack) as of_sensors:
        _watch_two_links(ministack, shared)
        gone = CheckJob(job_id="2020-01-06T09:00:00Z:gone", run_id="2020-01-06T09:00:00Z", link_id="gone", sequence=0,
                        config_version=1)  # fmt: skip
        ministack.client("sqs").send_message(QueueUrl=shared.dead_letter_url, MessageBody=write_message(gone))
        for name, value in {**_through(of_run, shared), **_mail(ses_server)}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
        with working(replace(shared, env=_through(of_worker, shared)), tmp_path / "elsewhere"):
            terminal.fine("run")
        with build_app(tmp_path / "daemon", env={**_through(of_sensors, shared), **_mail(ses_server)}) as app:
            monkeypatch.setenv("AWS_ENDPOINT_URL", of_sensors.cloud.endpoint_url)
            app.prepare_delivery()
            app.look()
    roles = {name: allowed(role) for name, role in resources(ECS, "AWS::IAM::Role").items()}
    assert ("sqs:DeleteMessage", "dead") in needed(of_run.calls)
    assert (needed(of_run.calls) | asked["dispatch"] | asked["notify"] | asked["health"]) - roles["RunRole"] == set()
    assert ("sqs:DeleteMessage", "work") in needed(of_worker.calls)
    assert needed(of_worker.calls) - roles["WorkerRole"] == set()
    assert needed(of_sensors.calls) - roles["DagsterRole"] == set()


def _mail(ses: SesServer) -> dict[str, str]:
    return {
        "LINKWATCH_MAIL": "ses",
        "LINKWATCH_MAIL_FROM": ses.sender,
        "LINKWATCH_SES_CONFIGURATION_SET": ses.configuration_set,
        "AWS_ENDPOINT_URL_SESV2": ses.url,
    }


def _watch_two_links(cloud: Cloud, shared: Shared) -> None:
    """Refused by our own policy before any connection: nothing leaves this machine."""
    with closing(store_on(cloud.client("dynamodb"), shared.table)) as store:
        for name in ("a", "b"):
            link = a_link(name, f"http://127.0.0.1/{name}", active_since=WEEK - timedelta(days=1))
            store.save_link(link, replaces=None)


def _through(proxy: FaultProxy, shared: Shared) -> dict[str, str]:
    return {**shared.env, "AWS_ENDPOINT_URL": proxy.cloud.endpoint_url}
