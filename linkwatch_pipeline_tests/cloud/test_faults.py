"""A week with the functions as released while calls to AWS fail: nothing lost, nothing doubled, and the run ends.

What is told to a provider whose answer is lost may be told twice; then the second mail says so (decision 0008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from threading import Event

import pytest
from botocore.config import Config

from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.cloud.fault_proxy import Call, Fault, FaultProxy, fault_proxy
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.cloud.test_recovery import MONDAY, RUN_ID, dispatch, go_to, register, tick
from linkwatch_pipeline_tests.entrypoints.functions import Functions, functions_on
from linkwatch_pipeline_tests.world import WorldProcess
from linkwatch_pipeline_tests.world.ses_server import SesServer

SITES = {"docs.example.com": {"pages": {"/gone": 404, "/ok": 200}}, "api.example.com": {"pages": {"/ok": 200}}}
URLS = ("http://docs.example.com/gone", "http://docs.example.com/ok", "http://api.example.com/ok")
ONCE = Config(read_timeout=0.5, retries={"total_max_attempts": 1})  # every fault reaches our code
AFTER_THE_EFFECT = (Fault.CUT_AFTER, Fault.SILENT_AFTER)
FAULTS = [fault for fault in Fault if fault is not Fault.CONFLICT]
IN_THE_SUITE = (Fault.SERVER_ERROR, Fault.CUT_AFTER)
SILENT = (Fault.SILENT_BEFORE, Fault.SILENT_AFTER)
ROUNDS = 20

Plan = Callable[[Call], Fault | None]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorldProcess]:
    with WorldProcess(SITES, tmp_path_factory.mktemp("world")) as opened:
        yield opened


@pytest.fixture(scope="module")
def proxy(ministack: Cloud) -> Iterator[FaultProxy]:
    with fault_proxy(ministack) as opened:
        yield opened


@pytest.fixture(scope="module")
def mail_proxy(ses_server: SesServer) -> Iterator[FaultProxy]:
    with fault_proxy(Cloud(endpoint_url=ses_server.url)) as opened:
        yield opened


class Week:
    """One week behind both proxies, to which the same plan happens."""

    def __init__(self, proxies: tuple[FaultProxy, FaultProxy], behind: Cloud, world: WorldProcess, ses: SesServer):
        self.proxies = proxies
        self.behind, self.world, self.ses = behind, world, ses

    def play(self, plan: Plan) -> list[Call]:
        """The calls that were made; what came of them is asserted here."""
        self.ses.accepted.clear()
        for proxy in self.proxies:
            proxy.begin()
        settings = {
            "LINKWATCH_MAIL": "ses",
            "LINKWATCH_MAIL_FROM": self.ses.sender,
            "LINKWATCH_SES_CONFIGURATION_SET": self.ses.configuration_set,
            "AWS_ENDPOINT_URL_SESV2": self.proxies[1].cloud.endpoint_url,
        }
        with functions_on(self.proxies[0].cloud, self.world, **settings) as functions:
            client = self.proxies[0].cloud.client("sqs", config=ONCE)
            dead = functions.dead_letter_url
            queue = SqsQueue(client, queue_url=functions.queue_url, dead_letter_url=dead, wait=timedelta(0))
            functions.app().__dict__["shared_queue"] = queue
            functions.sqs = self.behind.client("sqs")  # what the mapping does is Amazon's
            store = store_on(self.behind.client("dynamodb"), functions.table, clock=functions.clock)
            register(store, *URLS)
            for proxy in self.proxies:
                proxy.begin(plan)
            self._to_the_end(functions, store)
            calls = [call for proxy in self.proxies for call in proxy.calls]
            self._assert_whole(functions, store)
            store.close()
        return calls

    def _to_the_end(self, functions: Functions, store: DynamoStore) -> None:
        """As the schedules and the mapping go on, whatever fails; each round is some minutes later."""
        functions.hide_messages_for(0)
        moment = MONDAY
        for _ in range(ROUNDS):
            go_to(functions, moment)
            for step in (dispatch, tick, _work, _after_a_rest, tick, _notify, _health):
                with suppress(Exception):  # Amazon calls again, or the next minute does
                    step(functions)
            if _is_told(store):
                return
            moment += timedelta(minutes=65 if _is_over(store) else 6)

    def _assert_whole(self, functions: Functions, store: Store) -> None:
        run = store.get_run(RUN_ID)
        assert run is not None
        assert run.totals is not None, "the run did not end"
        assert dict(run.totals.by_end) == {"broken": 1, "reachable": 2}
        assert sorted(seen.job_id for seen in store.observations()) == [f"{RUN_ID}:link-{n}" for n in range(3)]
        assert [change.id for change in store.transitions()] == ["link-0:1"]
        (notice,) = store.notices()
        assert notice.status is NoticeStatus.SENT
        assert functions.depth(functions.dead_letter_url) == 0


def _work(functions: Functions) -> None:
    for record in functions.waiting():
        with suppress(Exception):
            functions.acknowledge([record], functions.call("check", {"Records": [record]}))


def _after_a_rest(functions: Functions) -> None:
    """The host's next job comes a second later."""
    waiting = "ApproximateNumberOfMessages"
    pause = Event()
    while functions.depth(functions.queue_url, f"{waiting}Delayed"):
        pause.wait(0.1)
    _work(functions)


def _notify(functions: Functions) -> None:
    functions.call("notify")


def _health(functions: Functions) -> None:
    functions.call("health")


def _is_over(store: Store) -> bool:
    run = store.get_run(RUN_ID)
    return run is not None and run.state.is_over


def _is_told(store: Store) -> bool:
    notices = list(store.notices())
    return _is_over(store) and all(notice.status is NoticeStatus.SENT for notice in notices)


@pytest.fixture(scope="module")
def week(
    proxy: FaultProxy, mail_proxy: FaultProxy, ministack: Cloud, world: WorldProcess, ses_server: SesServer
) -> Week:
    return Week((proxy, mail_proxy), ministack, world, ses_server)


def first_of_each(fault: Fault) -> Plan:
    """The first call of every operation beside the table fails."""
    failed: set[str] = set()

    def plan(call: Call) -> Fault | None:
        if call.service == "DynamoDB" or call.operation in failed:
            return None
        failed.add(call.operation)
        return fault if fault not in SILENT or call.service == "AmazonSQS" else None

    return plan


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=() if fault in IN_THE_SUITE else pytest.mark.campaign) for fault in FAULTS]
)
def test_a_week_comes_to_its_end_though_the_first_of_each_call_to_queue_mail_and_numbers_fails(
    week: Week, fault: Fault
) -> None:
    calls = week.play(first_of_each(fault))
    assert {"SendMessageBatch", "ReceiveMessage", "outbound-emails", "PutMetricData"} <= {c.operation for c in calls}
    assert len(week.ses.accepted) == (2 if fault in AFTER_THE_EFFECT and fault not in SILENT else 1)


@pytest.mark.campaign
@pytest.mark.parametrize("fault", FAULTS)
def test_a_week_comes_to_its_end_whichever_call_fails(week: Week, fault: Fault) -> None:
    """Each call in turn, those to the table included, by its number among those of its proxy."""
    calls = max(call.number for call in week.play(lambda call: None)) + 1
    for number in range(calls):
        week.play(lambda call, number=number: fault if call.number == number else None)  # type: ignore[misc]
