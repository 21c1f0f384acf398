"""A week of the functions as released, played in virtual time while what a plan says happens to their calls.

Tables, queues and numbers are ministack's own code in this process, mails go to a stand-in for SES, pages come from a
world on loopback; between them and the functions are real boto3 calls over real HTTP. botocore repeats nothing by
itself here, so that every fault reaches our code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from functools import partial
from itertools import takewhile
from typing import Any

from botocore.config import Config

from linkwatch_pipeline.adapters.metrics.cloudwatch import CloudWatchMetrics
from linkwatch_pipeline.adapters.notify.ses import SesNotifier
from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.domain.notices import CLAIM_FOR, NoticeStatus
from linkwatch_pipeline.use_cases.mail_frame import REPEATED
from linkwatch_pipeline.use_cases.send_mail import WAIT_FOR_WORD
from linkwatch_pipeline_tests.cloud.calls import Answer, Call, Fault, Plan, no_fault
from linkwatch_pipeline_tests.cloud.fault_proxy import FaultProxy, hears_silence, serving
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.patient_clients import PATIENCE
from linkwatch_pipeline_tests.cloud.played_week import Killed, PlayedWeek
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.cloud.timed_cloud import TimedCloud
from linkwatch_pipeline_tests.entrypoints.functions import Functions, functions_on
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world import WorldProcess
from linkwatch_pipeline_tests.world.ses_server import Accepted, SesServer

MAIL = "outbound-emails"
AFTER_THE_EFFECT = (Fault.CUT_AFTER, Fault.SILENT_AFTER)
SILENT = (Fault.SILENT_BEFORE, Fault.SILENT_AFTER)
ONCE = PATIENCE.merge(Config(retries={"total_max_attempts": 1}))
# How long the clients as released wait for an answer: so much time passes for them.
READ_TIMEOUTS = {"DynamoDB": 3, "AmazonSQS": 2, "GraniteServiceVersion20100801": 5, "/v2/email": 10}
SOON = timedelta(minutes=1)  # longer than a function repeats a write; the next one is called later


@dataclass(frozen=True, slots=True)
class Fate:
    """What happened to one call, and when."""

    call: Call
    fault: Fault | None
    at: datetime

    @property
    def has_effect(self) -> bool:
        return self.fault is None or self.fault in AFTER_THE_EFFECT

    @property
    def is_attempt(self) -> bool:
        """Whether it writes down that a mail is going to be handed over."""
        status = self.call.body.get("Item", {}).get("status", {}).get("S")
        return status == NoticeStatus.SENDING and self.has_effect


@dataclass
class Played:
    """What happened to the calls of a week, in their order."""

    fates: list[Fate] = field(default_factory=list)
    died_before: int | None = None  # the call instead of which the process died

    @property
    def operations(self) -> list[str]:
        return [fate.call.operation for fate in self.fates]

    @property
    def failed(self) -> list[int]:
        """The numbers of the calls that were made to fail."""
        return [number for number, fate in enumerate(self.fates) if fate.fault is not None]

    def soon_after(self, fate: Fate) -> Iterator[Fate]:
        """The calls after one, of the same function."""
        later = self.fates[fate.call.number + 1 :]
        return takewhile(lambda each: each.at <= fate.at + SOON, later)

    @property
    def mails(self) -> list[Fate]:
        """What happened to the calls that hand over a mail."""
        return [fate for fate in self.fates if fate.call.operation == MAIL]


@dataclass
class _Clients:
    """Those of the functions."""

    table: Any
    queue: Any
    metrics: Any
    mail: Any

    @classmethod
    def of(cls, cloud: Cloud, before_send: Callable[..., None]) -> _Clients:
        names = ("dynamodb", "sqs", "cloudwatch", "sesv2")
        clients = [hears_silence(cloud.client(name, config=ONCE)) for name in names]
        for client in clients:
            client.meta.events.register("before-send", before_send)
        return cls(*clients)


class Weeks:
    """Plays one week after the other, each in a cloud of its own."""

    def __init__(self, timed: TimedCloud, front: FaultProxy, behind: FaultProxy, world: WorldProcess, ses: SesServer):
        self._timed, self._front, self._world, self._ses = timed, front, world, ses
        self._clients = _Clients.of(front.cloud, self._before_send)
        self._played, self._dies_before, self._is_dead = Played(), math.inf, False
        self._mapping, self._reader = (behind.cloud.client(name) for name in ("sqs", "dynamodb"))

    def play(self, plan: Plan = no_fault, *, dies_before: int | None = None) -> Played:
        """What was called; that nothing was lost or doubled is asserted here.

        Args: dies_before: the call instead of which the functions' process dies; the next function is in a new one.
        """
        self._timed.forget()
        self._ses.accepted.clear()
        self._front.begin()
        clock, played = self._timed.new_clock(), Played()
        self._played, self._dies_before, self._is_dead = played, math.inf, False
        self.now = clock.now  # time as it passes in this play
        settings = {
            "LINKWATCH_MAIL": "ses",
            "LINKWATCH_MAIL_FROM": self._ses.sender,
            "LINKWATCH_SES_CONFIGURATION_SET": self._ses.configuration_set,
        }
        with functions_on(self._front.cloud, self._world, clock, **settings) as functions:
            reader = store_on(self._reader, functions.table, clock=clock, wait=clock.advance)
            week = PlayedWeek(functions, clock, reader, self._ses, partial(self._equip, clock))
            week.begin()
            self._dies_before = dies_before if dies_before is not None else math.inf
            self._front.begin(lambda call: _fate(call, plan, clock, played))
            week.to_the_end()
            self._front.begin()
            week.afterwards()
            week.assert_whole()
            assert_told(played, self._ses.accepted)
        return played

    def _equip(self, clock: VirtualClock, functions: Functions) -> None:
        """Give a new process clients that repeat nothing, and waits that take only time of this play."""
        self._is_dead = False
        parts, clients = functions.app(), self._clients
        queue = {"queue_url": functions.queue_url, "dead_letter_url": functions.dead_letter_url}
        store = store_on(clients.table, functions.table, clock=clock, page_items=None, wait=clock.advance)
        parts.__dict__.update(
            store=store,
            shared_queue=SqsQueue(clients.queue, **queue, wait=timedelta(0)),
            metrics=CloudWatchMetrics(clients.metrics, namespace=functions.namespace),
            notifier=SesNotifier(clients.mail, configuration_set=self._ses.configuration_set),
        )
        functions.sqs = self._mapping  # what the mapping does is Amazon's

    def _before_send(self, **_: object) -> None:
        """Who is dead calls nobody, not even to tidy up."""
        if len(self._played.fates) == self._dies_before:
            self._dies_before, self._is_dead = math.inf, True
            self._played.died_before = len(self._played.fates)
        if self._is_dead:
            raise Killed


def assert_told(played: Played, accepted: Sequence[Accepted]) -> None:
    """One mail, and another one only if what came of it is not known or not written down (decision 0008).

    That one says so, and comes an hour later, or when the claim of who could not write it down has run out. What was
    throttled, and is written down so, was certainly no mail.
    """
    texts, in_doubt = (_text(mail.content) for mail in accepted), False
    earliest = datetime.min.replace(tzinfo=UTC)
    for fate in played.fates:
        if fate.is_attempt and not any(later.call.operation == MAIL for later in played.soon_after(fate)):
            in_doubt, earliest = True, fate.at + CLAIM_FOR  # for all that is known, there was a mail
        if fate.call.operation != MAIL:
            continue
        assert fate.at >= earliest
        if fate.has_effect:
            assert (REPEATED in next(texts)) is in_doubt
        if not any(later.call.operation == "PutItem" and later.has_effect for later in played.soon_after(fate)):
            in_doubt, earliest = True, fate.at + CLAIM_FOR
        elif fate.fault is None:
            earliest = datetime.max.replace(tzinfo=UTC)
        elif fate.fault is not Fault.THROTTLED:
            in_doubt, earliest = True, fate.at + WAIT_FOR_WORD
    assert next(texts, None) is None


@contextmanager
def weeks_on(timed: TimedCloud, world: WorldProcess, ses: SesServer) -> Iterator[Weeks]:
    """Servers for the functions' calls and for everybody else's, until the block ends."""

    def answer(path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if not path.endswith(MAIL):
            return timed.answer(path, headers, body)
        told = {"MessageId": ses.accept(json.loads(body)).message_id}
        return Answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

    with ExitStack() as stack:
        front, behind = (stack.enter_context(serving(answer)) for _ in range(2))
        yield Weeks(timed, front, behind, world, ses)


def _fate(call: Call, plan: Plan, clock: VirtualClock, played: Played) -> Fault | None:
    """What happens to a call. Who asks waits for the answer, so nobody else is at work while time passes."""
    fault = plan(call)
    played.fates.append(Fate(call, fault, clock.now()))
    if fault in SILENT:
        clock.advance(timedelta(seconds=READ_TIMEOUTS[call.service]))
    return fault


def _text(content: bytes) -> str:
    part = message_from_bytes(content, policy=policy.default).get_body(("plain",))
    assert part is not None
    return " ".join(part.get_content().split())
