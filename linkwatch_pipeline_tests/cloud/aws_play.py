"""One week of the AWS half on an emulator, step by step (see `aws_local`).

Where the emulator does otherwise than Amazon, it is mended here, and said.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus, count_chains
from linkwatch_pipeline_tests.cloud.aws_account import Account, told_after, wrongs
from linkwatch_pipeline_tests.cloud.handbook_links import outcome_of, place_of, sites_of
from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.world import WorldProcess

ROOT = Path(__file__).resolve().parents[2]
STACK = "lw"
FUNCTIONS = ("dispatch", "check", "notify", "health", "mail-events")
CONTACT = "links@example.com"
CONCURRENCY = 4  # of checks side by side: each is a process here, and this machine may have two cores
PATIENCE = timedelta(minutes=5)
PATIENCE_A_LINK = timedelta(seconds=3)  # the emulator's mapping receives one message after the other
PATIENCE_A_LINK_OF_ONE_HOST = timedelta(seconds=10)  # rest, skew, and the mapping's round over all the other hosts
REPEAT_AFTER = timedelta(seconds=30)  # more than the emulator's ten seconds between two looks at its schedules
_LOOK_AGAIN_SECONDS = 0.5


class NotAsPromised(Exception):
    """What the account found wrong."""


@dataclass
class Play:
    """One week on the emulator, from nothing to the account."""

    cloud: Cloud
    folder: Path
    links: list[str]
    handbook: Path | None = None  # whose links all of these are: then they come into the table by a scan of it
    hurried: bool = False  # what the minute's schedules would do is called at once
    clock: SystemClock = field(default_factory=SystemClock)
    say: Callable[[str], None] = print
    _outputs: dict[str, str] = field(default_factory=dict)

    def run(self, then: Callable[[Account], None] = lambda _: None) -> Account:
        """Play it. Args: then: is given the account while everything is still up."""
        with WorldProcess(sites_of(self.links), made(self.folder / "world")) as world:
            self._deploy(world)
            self._register()
            began = self.clock.monotonic()
            self._fire_schedule()
            self._until("the run has every verdict", self._everything_terminal)
            took = self.clock.monotonic() - began
            self._close_and_tell()
            looked_at = self.clock.now()
            self._invoke("health", {})
            account = self._account(took, looked_at)
            then(account)
            return account

    @property
    def env(self) -> Mapping[str, str]:
        """With these variables a person's commands find the emulator, and the home that works on its stacks."""
        return {**self.cloud.env, "LINKWATCH_HOME": str(self._home)}

    @property
    def _home(self) -> Path:
        return self.folder / "home"

    def _close_and_tell(self) -> None:
        if self.hurried:
            self.say("ticking and telling once, as the minute's schedules would")
            self._hand_over("dispatch", {"action": "tick"})
            self._until("the run is closed", self._everything_closed)
            self._hand_over("notify", {})
        else:
            self.say("waiting for the minute's schedules to close the run and tell the owners")
        self._until("the run is closed and every notice told", self._everything_told)
        # A check's verdict stands before its message is gone; where one stalled, the message comes once more.
        self._until("no message is left", lambda: not self._depth(self._outputs["QueueUrl"]))

    def _deploy(self, world: WorldProcess) -> None:
        self.say("deploying both stacks with their one command")
        packed = made(self.folder / "packed") / "world.json"
        packed.write_text(world.map.to_json())
        extra = [packed, ROOT / "linkwatch_pipeline_tests/cloud/loopback_world.py"]
        extra.append(ROOT / "linkwatch_pipeline_tests/world/address_map.py")
        given = {"Contact": CONTACT, "MailFrom": CONTACT, "MailIdentity": "example.com", "ScheduleState": "DISABLED"}
        given["Breaker"] = "false"  # so many pages are gone in this world that a person would have to be asked
        printed = self._stacks("deploy", *_options("--with", extra), *_options("--set", _pairs(given)))
        (made(self._home) / "linkwatch.toml").write_text(printed)
        for stack in (f"{STACK}-foundation", STACK):
            described = self.cloud.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
            self._outputs.update({each["OutputKey"]: each["OutputValue"] for each in described["Outputs"]})
        functions = self.cloud.client("lambda")
        for name in FUNCTIONS:  # the same code, in the world; its role stays
            was = functions.get_function_configuration(FunctionName=f"{STACK}-{name}")
            variables = was["Environment"]["Variables"] | {"LINKWATCH_ALLOW_ENDPOINT": "true"}
            handler = f"loopback_world.{name.replace('-', '_')}"
            functions.update_function_configuration(
                FunctionName=f"{STACK}-{name}", Handler=handler, Environment={"Variables": variables}
            )
        self._mend_roles()
        # The emulator takes a template's Number for text and then compares it with numbers.
        functions.update_event_source_mapping(
            UUID=self._outputs["CheckMappingId"], ScalingConfig={"MaximumConcurrency": CONCURRENCY}
        )
        # It drops what a template reserves.
        for name, most in (("dispatch", 1), ("check", CONCURRENCY)):
            functions.put_function_concurrency(FunctionName=f"{STACK}-{name}", ReservedConcurrentExecutions=most)

    def _mend_roles(self) -> None:
        """What the emulator judges otherwise than Amazon's reference of actions, resources and condition keys says.

        It wants a permission of its own for a batch, where Amazon takes that of the single thing; it knows neither the
        resources of SES nor the keys `ses:FromAddress` and `cloudwatch:namespace`, so that their statements never hold.
        """
        iam = self.cloud.client("iam")
        for role in iam.list_roles()["Roles"]:
            for name in iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]:
                document = iam.get_role_policy(RoleName=role["RoleName"], PolicyName=name)["PolicyDocument"]
                added = [mended for statement in document["Statement"] for mended in _mended(statement)]
                if added:
                    document = json.dumps({"Version": "2012-10-17", "Statement": added})
                    iam.put_role_policy(RoleName=role["RoleName"], PolicyName="mended", PolicyDocument=document)

    def _register(self) -> None:
        linkwatch = ["-c", "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"]
        for words in (["owner", "docs", "docs@example.com"], self._words_of_registration()):
            self._python([*linkwatch, *words], {"LINKWATCH_HOME": str(self._home)})

    def _words_of_registration(self) -> list[str]:
        if self.handbook is not None:
            self.say(f"registering the {len(self.links)} links of {self.handbook.name} with 'linkwatch scan'")
            return ["scan", str(self.handbook), "--owner", "docs"]
        self.say(f"registering {len(self.links)} links of the 18F handbook with 'linkwatch import'")
        file = self.folder / "links.json"
        rows = [{"id": f"link-{n:03d}", "url": url, "owner": "docs"} for n, url in enumerate(self.links)]
        file.write_text(json.dumps(rows))
        return ["import", str(file)]

    def _fire_schedule(self) -> None:
        at = self.clock.now() + timedelta(seconds=1)
        self.say("switching the schedules on; the weekly one is due in a second, the emulator looks every ten")
        given = {"ScheduleState": "ENABLED", "WeeklySchedule": f"at({at:%Y-%m-%dT%H:%M:%S})"}
        # A schedule's call that meets another one of `dispatch` is gone here, where Amazon keeps it for its turn.
        given["WeeklyRepeatSchedule"] = f"at({at + REPEAT_AFTER:%Y-%m-%dT%H:%M:%S})"
        # Nothing is packed anew: the code stays.
        current = self.cloud.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]["Parameters"]
        (code,) = (each["ParameterValue"] for each in current if each["ParameterKey"] == "CodeKey")
        self._stacks("deploy", "--code", code, *_options("--set", _pairs(given)))

    def _everything_terminal(self) -> bool:
        with self._store() as store:
            run = next(iter(store.runs()), None)
            if run is None or run.dispatched_at is None:
                return False
            return run.state.is_over or not count_chains(store.chains(run.run_id)).pending

    def _everything_closed(self) -> bool:
        with self._store() as store:
            return all(run.state.is_over for run in store.runs())

    def _everything_told(self) -> bool:
        if not self._everything_closed():
            return False
        with self._store() as store:
            return all(notice.status is NoticeStatus.SENT for notice in store.notices())

    def _account(self, seconds: float, looked_at: datetime) -> Account:
        with self._store() as store:
            run = next(iter(store.runs()))
            jobs = list(store.jobs(run.run_id))
            rows = Counter(job.outcome.value if job.outcome is not None else job.status.value for job in jobs)
            counts = run.totals or count_chains(store.chains(run.run_id))
            sites = sites_of(self.links)
            found = Account(
                run_id=run.run_id,
                state=run.state.value,
                seconds=seconds,
                links=len(jobs),
                hosts=len({job.host for job in jobs}),
                ends=dict(counts.by_end),
                rows=dict(rows),
                expected=dict(
                    Counter(outcome_of(sites[host]["pages"][target]) for host, target in map(place_of, self.links))
                ),
                transitions=sum(1 for _ in store.transitions()),
                notices=dict(Counter(notice.status.value for notice in store.notices())),
                told_after=tuple(map(told_after, store.notices())),
                mails=len(self._mailbox()),
                waiting=self._depth(self._outputs["QueueUrl"]),
                dead_letters=self._depth(self._outputs["DeadLetterQueueUrl"]),
                metrics={name: self._metric(name, looked_at) for name in ("RunLate", "CriticalFindings", "Heartbeat")},
                alarms=self._alarms(),
                late_lately=None,
                denied=tuple(self._logged("not authorized")),
                packed=self._packed(),
            )
            found = replace(found, late_lately=self._was_late_lately(looked_at))  # after the alarms were read
            return replace(found, wrong=tuple(wrongs(found, run, jobs_pending=any(_pending(job) for job in jobs))))

    def _mailbox(self) -> list[Any]:
        with urllib.request.urlopen(f"{self.cloud.endpoint_url}/_ministack/ses/messages", timeout=30) as answer:
            by_account: dict[str, list[Any]] = json.load(answer)["messages"]
        return [message for messages in by_account.values() for message in messages]

    def _depth(self, url: str) -> int:
        names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        attributes = self.cloud.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(attributes[name]) for name in names)

    def _metric(self, name: str, looked_at: datetime) -> float:
        """The lowest since our own look: one of the schedule may have begun while the run was open, and late."""
        return min((float(point["Minimum"]) for point in self._points(name, "Minimum", looked_at)), default=-1.0)

    def _was_late_lately(self, looked_at: datetime) -> bool | None:
        since, surely_since = (at - timedelta(minutes=1) for at in (looked_at, self.clock.now() + timedelta(seconds=1)))
        if any(point["Maximum"] for point in self._points("RunLate", "Maximum", surely_since)):
            return True
        return None if any(point["Maximum"] for point in self._points("RunLate", "Maximum", since)) else False

    def _points(self, name: str, statistic: str, since: datetime) -> list[dict[str, Any]]:
        answer = self.cloud.client("cloudwatch").get_metric_statistics(
            Namespace="linkwatch",
            MetricName=name,
            StartTime=since,
            EndTime=self.clock.now() + timedelta(hours=1),
            Period=60,
            Statistics=[statistic],
        )
        return list(answer["Datapoints"])

    def _alarms(self) -> dict[str, str]:
        alarms = self.cloud.client("cloudwatch").describe_alarms()["MetricAlarms"]
        return {
            alarm["AlarmName"].removeprefix(f"{STACK}-").rpartition("-")[0]: alarm["StateValue"] for alarm in alarms
        }

    def _logged(self, words: str) -> set[str]:
        """The lines of the functions' logs that say so."""
        logs = self.cloud.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        events = [event for group in groups for event in logs.filter_log_events(logGroupName=group).get("events", ())]
        return {event["message"] for event in events if words in event["message"]}

    def _packed(self) -> str:
        """Where the code of a function came from: the emulator could import what is installed beside it."""
        functions = self.cloud.client("lambda")
        functions.update_function_configuration(FunctionName=f"{STACK}-health", Handler="loopback_world.where")
        files: dict[str, str] = self._invoke("health", {})
        functions.update_function_configuration(FunctionName=f"{STACK}-health", Handler="loopback_world.health")
        packed, installed = files["this"].rpartition("/")[0], files["aws_lambda"].partition("/linkwatch_pipeline/")[0]
        return "the zip" if packed == installed else f"NOT the zip: {files}"

    def _invoke(self, name: str, event: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.cloud.client("lambda").invoke(FunctionName=f"{STACK}-{name}", Payload=json.dumps(event).encode())
        told: dict[str, Any] = json.load(io.BytesIO(answer["Payload"].read()))
        if "FunctionError" in answer:
            raise NotAsPromised(f"{name} failed: {told}")
        return told

    def _hand_over(self, name: str, event: Mapping[str, Any]) -> None:
        """Call it as a schedule does, which waits for no answer and is not refused.

        A direct call of `dispatch`, of which one runs at a time, is refused while the minute's tick runs. That is as
        on Amazon, but the emulator counts it among the function's errors, and takes these for every function's. A call
        that is handed over waits for its turn, here for some seconds only; if it is lost then, the minute's schedule
        does the same.
        """
        self.cloud.client("lambda").invoke(
            FunctionName=f"{STACK}-{name}", InvocationType="Event", Payload=json.dumps(event).encode()
        )

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        patience = _patience(self.links)
        pause, end = Event(), self.clock.monotonic() + patience.total_seconds()
        while not holds():
            if self.clock.monotonic() > end:
                failed = sorted(self._logged("function failed"))
                raise NotAsPromised("\n".join([f"after {patience} it is still not so that {what}", *failed]))
            pause.wait(_LOOK_AGAIN_SECONDS)

    @contextmanager
    def _store(self) -> Iterator[DynamoStore]:
        client = self.cloud.client("dynamodb")
        store = store_on(client, self._outputs["TableName"], clock=self.clock, page_items=None)
        yield store
        store.close()

    def _stacks(self, *words: str) -> str:
        return self._python([str(ROOT / "deploy/stacks.py"), "--name", STACK, *words], {})

    def _python(self, words: list[str], env: Mapping[str, str]) -> str:
        """What it printed."""
        alone = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LINKWATCH_"))}
        done = subprocess.run(
            [sys.executable, *words],
            env={**alone, **self.cloud.env, **env},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode:
            raise NotAsPromised(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout


def _mended(statement: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What has to be added beside a statement so that the emulator takes it as Amazon does."""
    actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
    batches = [f"{action}Batch" for action in actions if action in ("sqs:SendMessage", "sqs:ChangeMessageVisibility")]
    if batches:
        yield {"Effect": "Allow", "Action": batches, "Resource": statement["Resource"]}
    if set(actions) & {"ses:SendEmail", "cloudwatch:PutMetricData"}:
        yield {"Effect": "Allow", "Action": actions, "Resource": "*"}


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _options(name: str, values: Sequence[object]) -> list[str]:
    return [part for value in values for part in (name, str(value))]


def _patience(links: Sequence[str]) -> timedelta:
    busiest = max(Counter(place_of(url)[0] for url in links).values())
    return PATIENCE + len(links) * PATIENCE_A_LINK + busiest * PATIENCE_A_LINK_OF_ONE_HOST


@contextmanager
def cloud_with_roles(folder: Path) -> Iterator[Cloud]:
    """An emulator that allows a call only if the caller's role does. Ours are the account's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTH", "true")
        with started_ministack(folder) as cloud:
            yield replace(cloud, access_key_id="test", secret_access_key="test")


def _pending(job: Any) -> bool:
    return bool(job.status is JobStatus.PENDING)
