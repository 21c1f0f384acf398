"""Puts the parts together: a home and its settings become an `App`. The one room that knows everybody.

Parts are opened when they are first asked for, and heavy libraries are imported then: importing this module is cheap.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from linkwatch_pipeline.adapters.clock import SystemClock, wait
from linkwatch_pipeline.adapters.fetch.allowed_hosts import AllowedHosts
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, Policy, PublicPolicy
from linkwatch_pipeline.adapters.fetch.resolver import Resolver
from linkwatch_pipeline.adapters.home import FixtureMark, Home, complete_home, find_home
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.domain.alarms import after_look
from linkwatch_pipeline.domain.allowances import Allowances
from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import ConfigurationError, MissingExtra
from linkwatch_pipeline.domain.health import missing_heartbeat
from linkwatch_pipeline.domain.health_findings import Finding
from linkwatch_pipeline.domain.hosts import WORKER_LIFE, Chance
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import JobRecord, Run, RunCounts
from linkwatch_pipeline.domain.scheduling import ASSUMED_SERVICE
from linkwatch_pipeline.domain.urls import RefusedUrl, parse_url
from linkwatch_pipeline.ports import (
    AlarmDestination,
    AlarmMemory,
    Clock,
    Fetcher,
    History,
    Metrics,
    Notifier,
    Progress,
    Queue,
    Reports,
    Store,
    Warehouse,
)
from linkwatch_pipeline.settings import (
    HOME_VARIABLE,
    PASSWORD_FILE_VARIABLE,
    PASSWORD_VARIABLE,
    SMTP_PORTS,
    Settings,
    load_settings,
    load_smtp_password,
    settings_text,
)
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices, prepare_delivery
from linkwatch_pipeline.use_cases.follow_run import follow_run
from linkwatch_pipeline.use_cases.observe_week import latest_moment, observe_hosts
from linkwatch_pipeline.use_cases.review_week import latest_week
from linkwatch_pipeline.use_cases.settle_doubt import settle_doubts
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.tell_alarms import Told, tell_alarms
from linkwatch_pipeline.use_cases.visit import CheckParts
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline.use_cases.work import LocalOrder

if TYPE_CHECKING:
    from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse

DEFAULT_HOME = ".linkwatch"
SKEW_BETWEEN_MACHINES = timedelta(seconds=1)
DISTRIBUTION = "linkwatch-pipeline"
_FIXTURE_CONTACT = "fixture"


class SilentProgress:
    """`ports.Progress` for when nobody watches."""

    def job_ended(self, job: JobRecord, end: str) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class App:
    """The wired parts of one home. Use it as a context manager, so that the store is closed.

    `resolver` and `ssl_context` None mean the machine's own. `skew` is how far other workers' clocks may differ:
    nothing where all share this machine's, 1 s on AWS. `progress` is told what happens in runs.
    """

    home: Home
    settings: Settings
    clock: Clock
    chance: Chance
    policy: Policy
    resolver: Resolver | None = None
    ssl_context: ssl.SSLContext | None = None
    skew: timedelta = timedelta(0)
    progress: Progress = field(default_factory=SilentProgress)
    smtp_password: str = field(default="", repr=False)

    @property
    def on_aws(self) -> bool:
        """Whether everything is kept in AWS, so that other machines may be at work on it too."""
        return self.settings.profile == "aws"

    @property
    def pace(self) -> Pace:
        """How links are visited, for planning ahead."""
        return Pace(concurrency=self.settings.concurrency, mean_service=ASSUMED_SERVICE, cooldown=self.cooldown)

    @property
    def cooldown(self) -> timedelta:
        return timedelta(seconds=self.settings.cooldown_seconds)

    @property
    def allowances(self) -> Allowances:
        """Visits at once that hosts' operators agreed to. Every dispatcher and worker of a store needs the same."""
        return {host: agreed.visits for host, agreed in self.settings.allowances.items()}

    @property
    def default_confirm(self) -> int:
        return self.settings.confirm

    @property
    def breaker(self) -> BreakerRules:
        """When a run is suspect."""
        chosen = self.settings
        return BreakerRules(
            is_on=chosen.breaker,
            hosts=chosen.breaker_hosts,
            hosts_share=chosen.breaker_hosts_percent / 100,
            links=chosen.breaker_links,
            links_share=chosen.breaker_links_percent / 100,
            canaries=chosen.canaries,
        )

    @property
    def user_agent(self) -> str:
        """Who we are and where to complain."""
        contact = self.settings.contact or _FIXTURE_CONTACT
        return f"linkwatch/{version()} (+{contact})"

    @cached_property
    def store(self) -> Store:
        return _open_table(self.settings, self.clock, self.chance) if self.on_aws else _open_file(self.home)

    @cached_property
    def notifier(self) -> Notifier:
        """How mails go out. Raises ConfigurationError if that cannot be as it is set."""
        if self.settings.mail == "smtp":
            return self._smtp_notifier()
        if self.settings.mail == "ses":
            return self._ses_notifier()
        from linkwatch_pipeline.adapters.notify.files import FileNotifier

        return FileNotifier(self.home.mail)

    @property
    def mail_destination(self) -> str:
        """Where mails are handed over, for people."""
        return {"smtp": self.settings.smtp_host, "ses": "Amazon SES"}.get(self.settings.mail, str(self.home.mail))

    def _smtp_notifier(self) -> Notifier:
        from linkwatch_pipeline.adapters.notify.smtp import SmtpNotifier, SmtpSecurity, SmtpServer

        chosen = self.settings
        if bool(chosen.smtp_username) != bool(self.smtp_password):
            raise ConfigurationError(
                f"smtp_username goes with a password: set {PASSWORD_VARIABLE} or {PASSWORD_FILE_VARIABLE}."
                if chosen.smtp_username
                else f"{PASSWORD_VARIABLE} is set without smtp_username; set both or none."
            )
        server = SmtpServer(
            host=chosen.smtp_host,
            port=chosen.smtp_port or SMTP_PORTS[chosen.smtp_security],
            security=SmtpSecurity(chosen.smtp_security),
            username=chosen.smtp_username,
            password=self.smtp_password,
        )
        return SmtpNotifier(server, tls=self.ssl_context or ssl.create_default_context())

    def _ses_notifier(self) -> Notifier:
        from linkwatch_pipeline.adapters.notify.ses import SesNotifier, ses_client

        client = ses_client(region=self.settings.ses_region or None)
        return SesNotifier(client, configuration_set=self.settings.ses_configuration_set)

    @cached_property
    def metrics(self) -> Metrics:
        if self.on_aws:
            from linkwatch_pipeline.adapters.metrics.cloudwatch import CloudWatchMetrics

            return CloudWatchMetrics.connect(namespace=self.settings.metrics_namespace)
        from linkwatch_pipeline.adapters.metrics.local import LocalMetrics

        return LocalMetrics(self.home.metrics_file)

    @contextmanager
    def shared_warehouse(self) -> Iterator[Warehouse]:
        """The warehouse for the time of a block: brought up to date from its bucket before, copied there afterwards.

        Without the setting `warehouse_bucket` it is just the folder's. Raises StoreUnavailable, MissingExtra.
        """
        if not self.settings.warehouse_bucket:
            yield self.warehouse
            return
        try:
            from linkwatch_pipeline.adapters.warehouse.bucket import connect_bucket
        except ModuleNotFoundError as error:
            raise MissingExtra("aws", "the setting 'warehouse_bucket'") from error
        bucket, _, prefix = self.settings.warehouse_bucket.partition("/")
        copy = connect_bucket(self.home.warehouse, bucket=bucket, prefix=prefix)
        copy.fetch()
        yield self.warehouse
        copy.store()

    @cached_property
    def alarm_destinations(self) -> Mapping[str, AlarmDestination]:
        """Where on-call is told, by the name of its setting."""
        from linkwatch_pipeline.adapters.alarms.lines_file import AlarmLines
        from linkwatch_pipeline.adapters.alarms.webhook import AlarmWebhook

        found: dict[str, AlarmDestination] = {}
        if self.settings.ops_file:
            found["ops_file"] = AlarmLines(self.home.folder / self.settings.ops_file)
        if self.settings.ops_webhook:
            url = self.settings.ops_webhook
            found["ops_webhook"] = AlarmWebhook(url, user_agent=self.user_agent, ssl_context=self.ssl_context)
        return found

    @cached_property
    def alarm_memory(self) -> AlarmMemory:
        from linkwatch_pipeline.adapters.alarms.memory_file import AlarmFile

        return AlarmFile(self.home.alarm_memory)

    @cached_property
    def warehouse(self) -> Warehouse:
        return _open_warehouse(self.home)

    @cached_property
    def reports(self) -> Reports:
        from linkwatch_pipeline.adapters.reports.duckdb_reports import DuckDBReports

        return DuckDBReports(_open_warehouse(self.home).views)

    def make_history(self, links: int, *, seed: int, first_week: datetime) -> History:
        """A made-up history of so many links, the same for the same seed. Raises MissingExtra without numpy."""
        try:
            from linkwatch_pipeline.adapters.warehouse.history.generated import GeneratedHistory
        except ImportError as exc:
            raise MissingExtra("reports", "a made-up history") from exc
        return GeneratedHistory(
            links,
            seed=seed,
            first_week=first_week,
            warehouse=_open_warehouse(self.home),
            folder=self.home.warehouse,
            confirm=self.default_confirm,
        )

    def grouped(self) -> AbstractContextManager[None]:
        """Let the store commit many small writes together, where it gains by that."""
        return _grouped(self.store)()

    @cached_property
    def shared_queue(self) -> Queue:
        """The queue of all workers. Raises ConfigurationError in a profile that has none."""
        if not self.on_aws:
            raise ConfigurationError(
                "the profile \"local\" has no queue that workers could share; 'linkwatch run' works on its runs. "
                'Set profile = "aws".'
            )
        missing = [key for key in ("queue_url", "dead_letter_queue_url") if not getattr(self.settings, key)]
        if missing:
            raise ConfigurationError(f"the shared queue needs {' and '.join(missing)}; the stack tells both.")
        from linkwatch_pipeline.adapters.queue.sqs import SqsQueue

        return SqsQueue.connect(queue_url=self.settings.queue_url, dead_letter_url=self.settings.dead_letter_queue_url)

    def make_queue(self, order: LocalOrder) -> Queue:
        """A queue for the work of this process, asking `order` which message goes first."""
        from linkwatch_pipeline.adapters.queue.memory import MemoryQueue

        return MemoryQueue(self.clock, order=order)

    @property
    def work_queue(self) -> Queue | None:
        """The queue that outlives its processes; None where each process that works on a run has its own."""
        return self.shared_queue if self.on_aws else None

    def make_fetcher(self) -> Fetcher:
        """A fetcher within this home's policy; the caller closes it. Raises ConfigurationError without a contact."""
        from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher

        self.require_contact()
        return GuardedFetcher(
            self.policy,
            clock=self.clock,
            user_agent=self.user_agent,
            resolver=self.resolver,
            ssl_context=self.ssl_context,
            deadline=self.policy.deadline,
        )

    def require_contact(self) -> None:
        """Raise ConfigurationError if a host of the public Internet would be visited without saying who to ask."""
        if self.settings.contact or self.home.fixture is not None:
            return
        if any(self._may_visit(link.url) for link in self.store.links() if link.retired_at is None):
            raise ConfigurationError(
                f"no contact is set, and other people's hosts are not visited without one. Write where their operators "
                f'can complain into {self.home.settings_file}, such as contact = "links@example.com".'
            )

    @asynccontextmanager
    async def checking(self, *, worker: str, life: timedelta = WORKER_LIFE) -> AsyncIterator[CheckParts]:
        """What checks are made of, for the time of the block.

        Args:
            worker: names this process in the leases it takes (`new_worker`).
            life: how long one job's fetch may take.
        """
        from linkwatch_pipeline.adapters.writer_thread import WriterThread

        with WriterThread(nullcontext if self.on_aws else _grouped(self.store)) as blocking:
            fetcher = self.make_fetcher()
            try:
                yield CheckParts(
                    store=self.store,
                    fetcher=fetcher,
                    clock=self.clock,
                    chance=self.chance,
                    blocking=blocking,
                    progress=self.progress,
                    worker=worker,
                    cooldown=self.cooldown,
                    skew=self.skew,
                    default_confirm=self.default_confirm,
                    allowances=self.allowances,
                    life=life,
                )
            finally:
                await fetcher.aclose()

    @contextmanager
    def sole_runner(self) -> Iterator[str]:
        """Be the one process that works on runs in this home; yields its worker name.

        The hosts that a dead predecessor was visiting are free again after their cooldown. Raises AlreadyRunning.
        On AWS nobody is the only one, and nothing is held: what keeps workers apart is in the store.
        """
        if self.on_aws:
            yield new_worker("follow")
            return
        from linkwatch_pipeline.adapters.run_lock import hold_run_lock

        def free_hosts(of: str) -> None:
            self.store.void_leases(token_prefix=of, now=self.clock.now(), cooldown=self.cooldown)

        worker = new_worker("run")
        with hold_run_lock(self.home.run_lock, worker=worker, bury=free_hosts):
            yield worker

    def in_week(self, week: datetime) -> App:
        """The same home as it was in a week: a story home's clock shows that week; any other home is as it is.

        It goes on from the latest moment that the store knows of the week, so a resumed week never runs backwards.
        """
        if self.home.fixture is None or not self.home.fixture.story:
            return self
        return self._changed(clock=StoryClock(SystemClock(), latest_moment(self.store, week)))

    def with_progress(self, progress: Progress) -> App:
        """The same parts, telling `progress` what happens in runs."""
        return self._changed(progress=progress)

    def _changed(self, **parts: Any) -> App:
        changed = replace(self, **parts)
        changed.__dict__["store"] = self.store  # one connection, closed by whoever opened it
        return changed

    def observe(
        self, run: Run, hosts: Iterable[str] | None, *, worker: str, tell: Callable[[str], None] | None = None
    ) -> None:
        """Return when these hosts (all, if None) have nothing left in the run.

        They are checked in this process; on AWS by whoever takes messages from the shared queue, while this ticks.

        Args:
            worker: as `sole_runner` named this process.
            tell: told how far a run is that others work on; None tells `progress`.
        """
        asyncio.run(self._follow(run, hosts, worker, tell) if self.on_aws else self._work(run, hosts, worker))

    async def _work(self, run: Run, hosts: Iterable[str] | None, worker: str) -> None:
        async with self.checking(worker=worker) as parts:
            await observe_hosts(parts, run, hosts, concurrency=self.settings.concurrency, make_queue=self.make_queue)

    async def _follow(
        self, run: Run, hosts: Iterable[str] | None, worker: str, tell: Callable[[str], None] | None
    ) -> None:
        say, queue = tell or self.progress.note, self.shared_queue
        named = frozenset(hosts) if hosts is not None else None
        async with self.checking(worker=worker) as parts:
            await follow_run(
                parts, queue, run.run_id, named, pace=self.pace, tell=lambda at, counts: say(_how_far(at, counts))
            )

    def deliver(self, *, refused_too: bool = False, life: timedelta | None = None) -> DeliveryReport:
        """One attempt for each notice that is due, and for those refused for good if somebody says so.

        Args: life: how long this process goes on; no mail is begun that would outlast it. None: as long as it takes.
        """
        return deliver_notices(
            self.store,
            self.notifier,
            clock=self.clock,
            sender=self.settings.mail_from,
            claimant=new_worker("deliver"),
            breaker=self.breaker,
            life=life,
            refused_too=refused_too,
        )

    def settle_doubts(self, *, arrived: Iterable[str], again: Iterable[str]) -> list[Notice]:
        """Write down what a person knows of mails whose answer was lost (`use_cases.settle_doubt`)."""
        return settle_doubts(self.store, arrived=arrived, again=again, now=self.clock.now())

    def look(self, *, surveyor: Surveyor | None = None) -> tuple[Finding, ...]:
        """All findings as of now; in a story home as of its last week, since nobody runs the weeks after the story.

        Args: surveyor: remembers what is not read every five minutes; None reads everything.
        """
        week = latest_week(self.store, now=self.clock.now())
        app = self.in_week(week) if week is not None else self
        return watch_health(app.store, app.metrics, clock=app.clock, breaker=app.breaker, surveyor=surveyor)

    def tell(self, findings: Iterable[Finding]) -> Told:
        """Tell on-call what it does not know yet of these findings, and remember that somebody looked."""
        return tell_alarms(self.alarm_memory, self.alarm_destinations, findings, source="health", now=self.clock.now())

    def has_to_tell(self, findings: Iterable[Finding]) -> bool:
        """Whether on-call does not know something of these findings, and nobody who tells has looked lately."""
        now, state = self.clock.now(), self.alarm_memory.read()
        if missing_heartbeat(state.looked_at, now=now) is None:
            return False
        after = after_look(state, findings, source="health", destinations=self.alarm_destinations, now=now)
        return any(after.waiting.values())

    def watch_the_watcher(self) -> tuple[Finding | None, Told]:
        """Whether somebody who tells has looked lately, and tell on-call if not. The store is left alone."""
        from linkwatch_pipeline.adapters.alarms.memory_file import AlarmFile

        now = self.clock.now()
        finding = missing_heartbeat(self.alarm_memory.read().looked_at, now=now)
        findings = [finding] if finding is not None else []
        memory = AlarmFile(self.home.watchdog_memory)
        return finding, tell_alarms(memory, self.alarm_destinations, findings, source="watchdog", now=now)

    def prepare_delivery(self) -> None:
        """Rule on the runs whose time has come, release or hold their notices, and lift the mutes that are over."""
        prepare_delivery(self.store, self.breaker, now=self.clock.now())

    def close(self) -> None:
        """Close what was opened."""
        if "store" in self.__dict__:
            self.store.close()

    def __enter__(self) -> App:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _may_visit(self, url: str) -> bool:
        try:
            self.policy.judge_url(parse_url(url))
        except RefusedUrl:
            return False
        return True


def build_app(
    folder: Path,
    *,
    env: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    clock: Clock | None = None,
    chance: Chance | None = None,
    policy: Policy | None = None,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    progress: Progress | None = None,
) -> App:
    """Open a home, making it on first use.

    Args:
        env: the environment; only `LINKWATCH_*` is looked at.
        flags: settings from the command line, by name; None values are not given.
        clock, chance, policy, resolver, ssl_context: for tests; None takes the real ones.
        progress: told what happens in runs; None tells nobody.
    Raises: ConfigurationError, StoreError. Nothing is left of a home that could not be made.
    """
    home = find_home(folder)
    settings = load_settings(home.settings_file, env=env, flags=flags, fixture=home.fixture is not None)
    _make_missing_parts(home, settings)
    return App(
        home=home,
        settings=settings,
        clock=clock if clock is not None else SystemClock(),
        chance=chance if chance is not None else random.Random(),
        policy=policy if policy is not None else _policy_of(home, settings),
        resolver=resolver,
        ssl_context=ssl_context,
        skew=SKEW_BETWEEN_MACHINES if settings.profile == "aws" else timedelta(0),
        progress=progress if progress is not None else SilentProgress(),
        smtp_password=load_smtp_password(env) if settings.mail == "smtp" else "",
    )


def build_app_without_home(
    *, env: Mapping[str, str], ssl_context: ssl.SSLContext | None = None, clock: Clock | None = None
) -> App:
    """The parts of the profile aws, where no folder is kept, as in a Lambda function. Nothing is opened yet.

    Args: as for `build_app`; all settings come from the environment.
    Raises: ConfigurationError, also without a contact: nobody should have to read all links to find that out.
    """
    home = Home(folder=Path("no-home"))
    settings = load_settings(home.settings_file, env=env)
    if settings.profile != "aws" or not settings.contact:
        raise ConfigurationError("without a home LINKWATCH_PROFILE must be aws, and LINKWATCH_CONTACT must be set.")
    return App(
        home=home,
        settings=settings,
        clock=clock if clock is not None else SystemClock(),
        chance=random.Random(),
        policy=_policy_of(home, settings),
        ssl_context=ssl_context,
        skew=SKEW_BETWEEN_MACHINES,
    )


def make_home(folder: Path, *, env: Mapping[str, str], fixture: FixtureMark | None = None) -> Home:
    """Make a new home, a fixture home if `fixture` says what it may reach.

    Raises: ConfigurationError if there is one already or the folder cannot be written, StoreError.
    """
    found = find_home(folder)
    if found.exists:
        raise ConfigurationError(f"{found.folder} is a linkwatch home already; name a new folder with --home.")
    home = Home(folder=found.folder, fixture=fixture)
    settings = load_settings(home.settings_file, env=env, fixture=fixture is not None)
    _make_missing_parts(home, settings)
    return home


def build_app_from_environment() -> App:
    """The home that LINKWATCH_HOME names, ./.linkwatch without it: for doors that get no arguments."""
    return build_app(Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME), env=os.environ)


def scanning_policy(folder: Path) -> Policy:
    """Whose literal addresses a scan may take: those of the home in a folder, if there is one. Makes no home."""
    fixture = find_home(folder).fixture
    return FixturePolicy(fixture.pairs) if fixture is not None else PublicPolicy()


def new_worker(kind: str) -> str:
    """A name for this process that no other has or had."""
    return f"{kind}-{os.getpid()}-{secrets.token_hex(6)}"


def version() -> str:
    """The installed version, `unknown` when linkwatch is run without being installed."""
    try:
        return installed_version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def _make_missing_parts(home: Home, settings: Settings) -> None:
    with complete_home(home, settings_text=settings_text()):
        # Made at once, so that a home whose database cannot be is not left half-made.
        if settings.profile == "local" and not home.database.exists():
            _open_file(home).close()


def _open_file(home: Home) -> Store:
    from linkwatch_pipeline.adapters.store.sqlite import SqliteStore

    return SqliteStore.open(home.database)


def _open_table(settings: Settings, clock: Clock, chance: Chance) -> Store:
    try:
        from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
    except ModuleNotFoundError as error:
        raise MissingExtra("aws", "the profile 'aws'") from error
    return DynamoStore.open(
        settings.table,
        clock=clock,
        chance=chance,
        wait=wait,
        new_id=lambda: secrets.token_hex(8),
        allow_endpoint=settings.allow_endpoint,
    )


def _open_warehouse(home: Home) -> ParquetWarehouse:
    from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse

    return ParquetWarehouse(home.warehouse)


def _grouped(store: Store) -> Callable[[], AbstractContextManager[None]]:
    """How calls that wait together share a commit: only a store on this machine's disk gains by it."""
    from linkwatch_pipeline.adapters.store.sqlite import SqliteStore

    return store.grouped if isinstance(store, SqliteStore) else nullcontext


def _how_far(run: Run, counts: RunCounts) -> str:
    ends = ", ".join(f"{end} {count}" for end, count in counts.by_end.items())
    return f"{run.run_id}  {counts.terminal}/{counts.expected}  {ends}".rstrip()


def _policy_of(home: Home, settings: Settings) -> Policy:
    policy: Policy = FixturePolicy(home.fixture.pairs) if home.fixture is not None else PublicPolicy()
    return AllowedHosts(policy, settings.allowed_hosts) if settings.allowed_hosts else policy
