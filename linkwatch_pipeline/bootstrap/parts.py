"""The wired parts of one home. A part is opened when it is first asked for."""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from linkwatch_pipeline.adapters.fetch.policy import Policy
from linkwatch_pipeline.adapters.fetch.resolver import Resolver
from linkwatch_pipeline.adapters.home import Home
from linkwatch_pipeline.bootstrap.alarms import open_alarm_destinations, open_alarm_memory
from linkwatch_pipeline.bootstrap.aws import (
    KEPT_AFTER_FETCH,
    open_cloudwatch,
    open_shared_queue,
    open_table,
    store_until,
    verify_service,
)
from linkwatch_pipeline.bootstrap.identity import user_agent
from linkwatch_pipeline.bootstrap.local import grouping, make_memory_queue, open_database, open_metrics_file
from linkwatch_pipeline.bootstrap.mail import mail_destination, open_notifier, refuse_a_private_mailbox
from linkwatch_pipeline.bootstrap.warehouse import bucket_copy, make_history, open_reports, open_warehouse
from linkwatch_pipeline.domain.allowances import Allowances
from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.hosts import Chance
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import JobRecord
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
from linkwatch_pipeline.settings import Settings
from linkwatch_pipeline.use_cases.visit import CheckParts, LeftBehind
from linkwatch_pipeline.use_cases.work import LocalOrder


class SilentProgress:
    """`ports.Progress` for when nobody watches."""

    def job_ended(self, job: JobRecord, end: str) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The wired parts of one home.

    `resolver` and `ssl_context` None mean the machine's own. `skew` is how far other workers' clocks may differ:
    nothing where all share this machine's, 1 s on AWS. `in_function`: each call has to end within some seconds.
    `left_behind` are hosts to let go once the store serves. `progress` is told what happens in runs.
    """

    home: Home
    settings: Settings
    clock: Clock
    chance: Chance
    policy: Policy
    resolver: Resolver | None = None
    ssl_context: ssl.SSLContext | None = None
    skew: timedelta = timedelta(0)
    in_function: bool = False
    left_behind: list[LeftBehind] = field(default_factory=list)
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
        """Who we are and where to complain; nobody but a fixture home visits hosts without a contact."""
        return user_agent(self.settings.contact or "fixture")

    @cached_property
    def store(self) -> Store:
        return open_table(self.settings, self.clock, self.chance) if self.on_aws else open_database(self.home)

    @cached_property
    def notifier(self) -> Notifier:
        """How mails go out. Raises ConfigurationError if that cannot be as it is set."""
        return open_notifier(self.settings, self.home, smtp_password=self.smtp_password, ssl_context=self.ssl_context)

    def require_mailer(self) -> None:
        """Raise ConfigurationError if a delivery from here would count as one and reach nobody."""
        refuse_a_private_mailbox(self.settings)

    @property
    def mail_destination(self) -> str:
        """Where mails are handed over, for people."""
        return mail_destination(self.settings, self.home)

    @cached_property
    def metrics(self) -> Metrics:
        return open_cloudwatch(self.settings) if self.on_aws else open_metrics_file(self.home)

    @cached_property
    def alarm_destinations(self) -> Mapping[str, AlarmDestination]:
        """Where on-call is told, by the name of its setting."""
        return open_alarm_destinations(
            self.settings, self.home, user_agent=self.user_agent, ssl_context=self.ssl_context
        )

    @cached_property
    def alarm_memory(self) -> AlarmMemory:
        return open_alarm_memory(self.home.alarm_memory)

    @cached_property
    def warehouse(self) -> Warehouse:
        return open_warehouse(self.home)

    @contextmanager
    def shared_warehouse(self) -> Iterator[Warehouse]:
        """The warehouse for the time of a block: brought up to date from its bucket before, copied there afterwards.

        Without the setting `warehouse_bucket` it is just the folder's. Raises StoreUnavailable, MissingExtra.
        """
        with bucket_copy(self.home.warehouse, self.settings.warehouse_bucket):
            yield self.warehouse

    @cached_property
    def reports(self) -> Reports:
        return open_reports(self.home)

    def make_history(self, links: int, *, seed: int, first_week: datetime) -> History:
        """A made-up history of so many links, the same for the same seed. Raises MissingExtra without numpy."""
        return make_history(self.home, links, seed=seed, first_week=first_week, confirm=self.default_confirm)

    def grouped(self) -> AbstractContextManager[None]:
        """Let the store commit many small writes together, where it gains by that."""
        return grouping(self.store)()

    @cached_property
    def shared_queue(self) -> Queue:
        """The queue of all workers. Raises ConfigurationError in a profile that has none."""
        return open_shared_queue(self.settings, in_function=self.in_function)

    def require_service(self) -> None:
        """Raise ConfigurationError unless the store and the queue of all workers are there and let us work."""
        verify_service(self.settings, self.store, lambda: self.shared_queue)

    def make_queue(self, order: LocalOrder) -> Queue:
        """A queue for the work of this process, asking `order` which message goes first."""
        return make_memory_queue(self.clock, order)

    @property
    def work_queue(self) -> Queue | None:
        """The queue that outlives its processes; None where each process that works on a run has its own."""
        return self.shared_queue if self.on_aws else None

    @property
    def watched_queue(self) -> Queue | None:
        """The queue that health looks at: that of all workers, unless this home does not know it."""
        settings = self.settings
        return self.work_queue if settings.queue_url and settings.dead_letter_queue_url else None

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
        links = self.store.links(damaged=lambda _: None)  # one that is damaged is not visited
        if any(self._may_visit(link.url) for link in links if link.retired_at is None):
            raise ConfigurationError(
                f"no contact is set, and other people's hosts are not visited without one. Write where their operators "
                f'can complain into {self.home.settings_file}, such as contact = "links@example.com".'
            )

    @asynccontextmanager
    async def checking(self, *, worker: str, ends_at: float | None = None) -> AsyncIterator[CheckParts]:
        """What checks are made of, for the time of the block.

        Args:
            worker: names this process in the leases it takes (`new_worker`).
            ends_at: the moment, in the clock's monotonic seconds, by which all has to be over; None for no such moment.
        """
        from linkwatch_pipeline.adapters.writer_thread import WriterThread

        with WriterThread(nullcontext if self.on_aws else grouping(self.store)) as blocking:
            fetcher = self.make_fetcher()
            try:
                yield CheckParts(
                    store=store_until(self.store, ends_at),
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
                    left_behind=self.left_behind,
                    fetched_by=ends_at - KEPT_AFTER_FETCH.total_seconds() if ends_at is not None else math.inf,
                )
            finally:
                await fetcher.aclose()

    def close(self) -> None:
        """Close what was opened."""
        if "store" in self.__dict__:
            self.store.close()

    def _may_visit(self, url: str) -> bool:
        try:
            self.policy.judge_url(parse_url(url))
        except RefusedUrl:
            return False
        return True
