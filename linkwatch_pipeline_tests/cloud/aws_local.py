"""The AWS half, whole, on an emulator: deployed by its own command, started by its own schedule, under its own roles.

    python -m linkwatch_pipeline_tests.cloud.aws_local [--links 60] [--handbook FOLDER] [--keep]      # make aws-local

ministack runs with AUTH=true, so every call of a function is allowed or denied by the role that the templates give it.
The links are those of the 18F handbook, or of another folder; the hosts are a world on loopback. Where the emulator
does otherwise than Amazon, it is mended here, and said.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.policy import PublicPolicy
from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus, Run, count_chains
from linkwatch_pipeline.entrypoints.cli.interrupts import sigterm_as_interrupt
from linkwatch_pipeline.use_cases.scan import scan_paths
from linkwatch_pipeline_tests.cloud.ministack import Cloud, started_ministack
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.whole_numbers import whole_number
from linkwatch_pipeline_tests.world import WorldProcess

ROOT = Path(__file__).resolve().parents[2]
EXCERPT = ROOT / "linkwatch_pipeline_tests" / "data" / "handbook" / "18f"
STACK = "lw"
FUNCTIONS = ("dispatch", "check", "notify", "health", "mail-events")
LATE_ALARM = "LateRunAlarm"
ALARMS = {
    *(f"{name}ErrorsAlarm" for name in ("Dispatch", "Check", "Notify", "Health", "MailEvents")),
    *(
        LATE_ALARM,
        "CriticalAlarm",
        "HeartbeatAlarm",
        "foundation-DeadLetterAlarm",
        "foundation-MailEventsDeadLetterAlarm",
    ),
}
CONTACT = "links@example.com"
CONCURRENCY = 4  # of checks side by side: each is a process here, and this machine may have two cores
MOST_ON_A_HOST = 5  # of the links of a small play, so that no host decides how long it takes
PATIENCE = timedelta(minutes=5)
PATIENCE_A_LINK = timedelta(seconds=3)  # the emulator's mapping receives one message after the other
PATIENCE_A_LINK_OF_ONE_HOST = timedelta(seconds=10)  # rest, skew, and the mapping's round over all the other hosts
REPEAT_AFTER = timedelta(seconds=30)  # more than the emulator's ten seconds between two looks at its schedules
_LOOK_AGAIN_SECONDS = 0.5


class NotAsPromised(Exception):
    """What the account found wrong."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was found at the end. `ends` are the run's counters, `rows` how its jobs stand one by one."""

    run_id: str
    state: str
    seconds: float
    links: int
    hosts: int
    ends: Mapping[str, int]
    rows: Mapping[str, int]
    expected: Mapping[str, int]
    transitions: int
    notices: Mapping[str, int]
    told_after: tuple[float, ...]  # seconds from a notice's release until SES, the emulator's, took its mail
    mails: int
    waiting: int
    dead_letters: int
    metrics: Mapping[str, float]
    alarms: Mapping[str, str]
    # Whether a look of the last minute, which is the late alarm's period, found the run late; None if that look became
    # older than a minute while we looked ourselves, when the alarm may say both.
    late_lately: bool | None
    denied: tuple[str, ...]  # what a role refused its function
    packed: str
    wrong: tuple[str, ...] = field(default=())

    def to_text(self) -> str:
        waits = self.told_after or (0.0,)
        lines = [
            f"run {self.run_id}: {self.state} after {self.seconds:.1f} s, {self.links} links on {self.hosts} hosts",
            f"counters: {_told(self.ends)}",
            f"job rows: {_told(self.rows)}",
            f"transitions {self.transitions}, notices: {_told(self.notices)}, mails in the emulator's box {self.mails}",
            f"from release to accepted: median {median(waits):.1f} s, longest {max(waits):.1f} s",
            f"work queue {self.waiting}, dead letters {self.dead_letters}, calls denied by a role {len(self.denied)}",
            f"metrics: {', '.join(f'{name} {value:g}' for name, value in sorted(self.metrics.items()))}",
            f"alarms: {', '.join(f'{name} {state}' for name, state in sorted(self.alarms.items()))}",
            "(INSUFFICIENT_DATA: this emulator has no numbers of queues and seldom looks at those of functions)",
            f"code that ran: {self.packed}",
            *(f"WRONG: {problem}" for problem in self.wrong),
        ]
        return "\n".join(lines)


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
        with WorldProcess(_sites(self.links), _made(self.folder / "world")) as world:
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
        packed = _made(self.folder / "packed") / "world.json"
        packed.write_text(world.map.to_json())
        extra = [packed, ROOT / "linkwatch_pipeline_tests/cloud/loopback_world.py"]
        extra.append(ROOT / "linkwatch_pipeline_tests/world/address_map.py")
        given = {"Contact": CONTACT, "MailFrom": CONTACT, "MailIdentity": "example.com", "ScheduleState": "DISABLED"}
        given["Breaker"] = "false"  # so many pages are gone in this world that a person would have to be asked
        printed = self._stacks("deploy", *_options("--with", extra), *_options("--set", _pairs(given)))
        (_made(self._home) / "linkwatch.toml").write_text(printed)
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
            sites = _sites(self.links)
            found = Account(
                run_id=run.run_id,
                state=run.state.value,
                seconds=seconds,
                links=len(jobs),
                hosts=len({job.host for job in jobs}),
                ends=dict(counts.by_end),
                rows=dict(rows),
                expected=dict(
                    Counter(_outcome(sites[host]["pages"][target]) for host, target in map(place_of, self.links))
                ),
                transitions=sum(1 for _ in store.transitions()),
                notices=dict(Counter(notice.status.value for notice in store.notices())),
                told_after=tuple(map(_told_after, store.notices())),
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
            return replace(found, wrong=tuple(_wrong(found, run, jobs_pending=any(_pending(job) for job in jobs))))

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


def _wrong(found: Account, run: Run, *, jobs_pending: bool) -> Iterator[str]:
    if found.state != "closed" or jobs_pending or run.totals is None:
        yield "the run is not complete"
    if dict(found.ends) != dict(found.rows):
        yield "the counters are not the rows"
    if dict(found.rows) != dict(found.expected):
        yield f"the world said {_told(found.expected)}"
    broken = found.expected.get("broken", 0)
    if (found.transitions, found.mails, Counter(found.notices)) != (broken, broken, Counter(sent=broken)):
        yield f"{broken} links are broken, each one transition, one notice, one mail"
    if found.waiting or found.dead_letters:
        yield "messages are left"
    if found.metrics != {"RunLate": _late(run), "CriticalFindings": 0, "Heartbeat": 1}:
        yield "the metrics are not what the health check found"
    if missing := ALARMS - set(found.alarms):
        yield f"alarms are not there: {', '.join(sorted(missing))}"
    sounding = {name for name, state in found.alarms.items() if state == "ALARM"}
    may_be_late = found.late_lately is not False
    if sounding - ({LATE_ALARM} if may_be_late else set()) or (found.late_lately and not sounding):
        yield f"in alarm: {', '.join(sorted(sounding)) or 'none'}; late within the last minute: {found.late_lately}"
    for message in found.denied:
        yield f"a role denies its function what it needs: {message}"
    if found.packed != "the zip":
        yield "the code did not come from the zip"


def _told_after(notice: Notice) -> float:
    if notice.sent_at is None or notice.release_at is None:
        return math.inf
    return (notice.sent_at - notice.release_at).total_seconds()


def _late(run: Run) -> float:
    """A week that is played late in the week is late, and that is to be said."""
    return 1.0 if run.closed_at is None else 0.0


def _pending(job: Any) -> bool:
    return bool(job.status is JobStatus.PENDING)


def _outcome(status: int) -> str:
    return {404: "broken", 410: "broken", 200: "reachable"}.get(status, "uncertain")


def _status(number: int) -> int:
    return 404 if number % 10 == 3 else 410 if number % 30 == 7 else 503 if number % 20 == 11 else 200


def _sites(links: list[str]) -> dict[str, Any]:
    sites: dict[str, Any] = {}
    for number, url in enumerate(links):
        host, target = place_of(url)
        sites.setdefault(host, {"pages": {}})["pages"][target] = _status(number)
    return sites


def place_of(url: str) -> tuple[str, str]:
    """Its host, and what is asked for there."""
    parts = urlsplit(url)
    return str(parts.hostname), (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _options(name: str, values: Sequence[object]) -> list[str]:
    return [part for value in values for part in (name, str(value))]


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _patience(links: Sequence[str]) -> timedelta:
    busiest = max(Counter(place_of(url)[0] for url in links).values())
    return PATIENCE + len(links) * PATIENCE_A_LINK + busiest * PATIENCE_A_LINK_OF_ONE_HOST


def links_of(handbook: Path) -> list[str]:
    """What `linkwatch scan` finds in it."""
    found = scan_paths([handbook], reader=HandbookReader(), judge_address=PublicPolicy().judge_address).found
    return [each.url for each in found]


def some_links(most: int) -> list[str]:
    """Of the excerpt of the 18F handbook, few of one host."""
    seen: Counter[str] = Counter()
    chosen: list[str] = []
    for url in links_of(EXCERPT):
        host, _ = place_of(url)
        if seen[host] < MOST_ON_A_HOST and len(chosen) < most:
            seen[host] += 1
            chosen.append(url)
    return chosen


@contextmanager
def cloud_with_roles(folder: Path) -> Iterator[Cloud]:
    """An emulator that allows a call only if the caller's role does. Ours are the account's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTH", "true")
        with started_ministack(folder) as cloud:
            yield replace(cloud, access_key_id="test", secret_access_key="test")


def _keep(play: Play, account: Account) -> None:
    """Say how to type at it, and stay until Ctrl-C."""
    print(account.to_text())
    print("\nAll of it stays up until Ctrl-C here. In another terminal:\n")
    for name, value in play.env.items():
        print(f"export {name}={shlex.quote(value)}")
    print("linkwatch links", flush=True)
    with suppress(KeyboardInterrupt):
        Event().wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.cloud.aws_local")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--links",
        type=whole_number(1, 10_000),
        help="at most so many links of an excerpt of the 18F handbook, few of a host",
    )
    which.add_argument(
        "--handbook", type=Path, default=EXCERPT, help="all links of this folder; without it, of that excerpt"
    )
    parser.add_argument("--keep", action="store_true", help="leave it up at the end, to type at, until Ctrl-C")
    given = parser.parse_args(arguments)
    try:
        with sigterm_as_interrupt():
            links = links_of(given.handbook) if given.links is None else some_links(given.links)
            if not links:
                parser.error(f"argument --handbook: no link was found in {given.handbook}")
            return _play_and_tell(links, given.handbook if given.links is None else None, keep=given.keep)
    except InvalidInput as refused:
        parser.error(f"argument --handbook: {refused.problem}. {refused.mend}")
    except KeyboardInterrupt:
        print("interrupted; the emulator and what it started have ended", file=sys.stderr)
        return 130


def _play_and_tell(links: list[str], handbook: Path | None, *, keep: bool) -> int:
    with tempfile.TemporaryDirectory() as folder, cloud_with_roles(_made(Path(folder) / "cloud")) as cloud:
        try:
            play = Play(cloud, Path(folder), links, handbook, hurried=handbook is None)
            account = play.run(partial(_keep, play) if keep else lambda _: None)
        except NotAsPromised as problem:
            print(problem, file=sys.stderr)
            return 1
    if not keep:
        print(account.to_text())
        print("(make aws-local ARGS=--keep leaves it up at the end, to type at)")
    return 1 if account.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
