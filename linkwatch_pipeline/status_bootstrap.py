"""Puts the parts of service status together, for a laptop, a Lambda function and Dagster alike.

Apart from `bootstrap`: a Lambda function has no home. What is heavy is imported when it is asked for.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.policy import Policy
from linkwatch_pipeline.adapters.fetch.resolver import Resolver
from linkwatch_pipeline.adapters.status_store.database_url import DatabasePlace, parse_database_url, read_secret
from linkwatch_pipeline.adapters.status_store.memory_queue import MemoryStatusQueue
from linkwatch_pipeline.adapters.status_store.postgres import PostgresStatusStore
from linkwatch_pipeline.adapters.status_store.redis_cache import RedisStatusCache, check_redis_url
from linkwatch_pipeline.adapters.status_store.rest import Rest
from linkwatch_pipeline.adapters.status_store.sqs_queue import SqsStatusQueue
from linkwatch_pipeline.adapters.writer_thread import WriterThread
from linkwatch_pipeline.bootstrap import fetch_policy, user_agent
from linkwatch_pipeline.domain.errors import ConfigurationError, MissingExtra
from linkwatch_pipeline.domain.fetching import TOTAL_DEADLINE
from linkwatch_pipeline.ports import Clock, Store
from linkwatch_pipeline.settings import StatusSettings, load_settings
from linkwatch_pipeline.use_cases.keep_status import StatusHalves
from linkwatch_pipeline.use_cases.monitor_services import CONCURRENCY, MonitorParts
from linkwatch_pipeline.use_cases.process_statuses import ProcessorParts
from linkwatch_pipeline.use_cases.tell_services import tell_services

NO_HOME = Path("linkwatch.toml")


@dataclass(frozen=True, kw_only=True)
class StatusApp:
    """The wired parts of service status.

    `user_agent` says who asks; a contact in it is wanted less than in the weekly check, since the services are ours.
    `resolver` and `ssl_context` None mean the machine's own. Connections are opened when they are first used. Both
    halves have a database connection of their own, since each works on its own thread. `queue_wait_seconds` is how long
    SQS is asked to wait for a message. `outbox` is the home's store, if there is one.
    """

    settings: StatusSettings
    policy: Policy
    user_agent: str
    clock: Clock
    resolver: Resolver | None = None
    ssl_context: ssl.SSLContext | None = None
    concurrency: int = CONCURRENCY
    queue_wait_seconds: int = 0
    outbox: Store | None = None

    @cached_property
    def directory(self) -> PostgresStatusStore:
        """The database as the monitor and readers use it."""
        return PostgresStatusStore(self._find_database)

    @cached_property
    def history(self) -> PostgresStatusStore:
        """The database as the processor uses it."""
        confirm = self.settings.confirm if self.settings.notices else None
        return PostgresStatusStore(self._find_database, confirm=confirm, rest=Rest(self.clock))

    @cached_property
    def cache(self) -> RedisStatusCache:
        return RedisStatusCache(self.settings.redis_url, rest=Rest(self.clock))

    @cached_property
    def memory_queue(self) -> MemoryStatusQueue:
        """The queue of this process, where SQS_QUEUE_URL names none."""
        return MemoryStatusQueue(self.clock, new_id=lambda: str(uuid4()))

    @cached_property
    def queue(self) -> MemoryStatusQueue | SqsStatusQueue:
        if not self.settings.sqs_queue_url:
            return self.memory_queue
        return SqsStatusQueue(self.settings.sqs_queue_url, wait_seconds=self.queue_wait_seconds)

    @asynccontextmanager
    async def monitoring(self, *, begin_within: timedelta | None = None) -> AsyncIterator[MonitorParts]:
        """What a monitor is made of, for the time of the block. Args: as in `MonitorParts`."""
        from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher

        with WriterThread() as blocking:
            fetcher = GuardedFetcher(
                self.policy,
                clock=self.clock,
                user_agent=self.user_agent,
                resolver=self.resolver,
                ssl_context=self.ssl_context,
                deadline=TOTAL_DEADLINE,
            )
            try:
                yield MonitorParts(
                    directory=self.directory,
                    history=self.directory,
                    queue=self.queue,
                    fetcher=fetcher,
                    clock=self.clock,
                    blocking=blocking,
                    concurrency=self.concurrency,
                    begin_within=begin_within,
                    keep=timedelta(hours=hours) if (hours := self.settings.keep_hours) is not None else None,
                )
            finally:
                await fetcher.aclose()

    @asynccontextmanager
    async def both_halves(self) -> AsyncIterator[StatusHalves]:
        """Monitor and processor side by side, for the time of the block."""
        async with self.monitoring() as monitor:
            with WriterThread() as blocking:
                yield StatusHalves(
                    monitor=monitor,
                    processor=ProcessorParts(
                        queue=self.queue, cache=self.cache, history=self.history, clock=self.clock, blocking=blocking
                    ),
                    ends_with_process=not self.settings.sqs_queue_url,
                    tell=self.tell if self.settings.notices and self.outbox is not None else None,
                )

    def tell(self) -> int:
        """Bring changes of services into the outbox; how many. Raises StoreError."""
        assert self.outbox is not None, "without a home there is no outbox"
        return tell_services(self.history, self.outbox, now=self.clock.now())

    def close(self) -> None:
        """End the connections that were opened."""
        for name in ("directory", "history", "cache", "queue"):
            if name in self.__dict__:
                self.__dict__[name].close()

    def _find_database(self) -> DatabasePlace:
        place = self._named_database()
        return replace(place, sslrootcert=place.sslrootcert or self.settings.root_certificates)

    def _named_database(self) -> DatabasePlace:
        if self.settings.database_url:
            return parse_database_url(self.settings.database_url)
        with closing(_secrets_client(self.settings.database_url_secret_arn)) as client:
            return read_secret(self.settings.database_url_secret_arn, client)


def build_status_app(
    settings: StatusSettings,
    *,
    policy: Policy,
    user_agent: str,
    clock: Clock | None = None,
    queue_wait_seconds: int = 0,
    outbox: Store | None = None,
) -> StatusApp:
    """The parts by their settings; a URL that cannot be one is refused now. Raises ConfigurationError."""
    check_status_settings(settings)
    return StatusApp(
        settings=settings,
        policy=policy,
        user_agent=user_agent,
        clock=clock if clock is not None else SystemClock(),
        queue_wait_seconds=queue_wait_seconds,
        outbox=outbox,
    )


def check_status_settings(settings: StatusSettings) -> None:
    """Raise ConfigurationError for a URL that cannot be one, before anything is opened."""
    if settings.database_url:
        parse_database_url(settings.database_url)
    if settings.redis_url:
        check_redis_url(settings.redis_url)


def status_app_without_home(
    settings: StatusSettings, env: Mapping[str, str], *, outbox: Store | None = None
) -> StatusApp:
    """For a Lambda function: the public Internet, within LINKWATCH_ALLOWED_HOSTS, as LINKWATCH_CONTACT.

    Raises: ConfigurationError.
    """
    known = load_settings(NO_HOME, env=env)
    return build_status_app(settings, policy=fetch_policy(known), user_agent=user_agent(known.contact), outbox=outbox)


def _secrets_client(arn: str) -> Any:
    """A client in the secret's own region. Raises MissingExtra, ConfigurationError."""
    try:
        from botocore.config import Config

        from linkwatch_pipeline.adapters.aws_client import make_client
    except ImportError:
        raise MissingExtra("aws", "a secret (DATABASE_URL_SECRET_ARN)") from None
    region = arn.split(":")[3] if arn.startswith("arn:") and arn.count(":") >= 6 else None
    try:
        config = Config(connect_timeout=2, read_timeout=5)
        return make_client("secretsmanager", region_name=region, config=config, called="Secrets Manager")
    except ConfigurationError as error:
        raise ConfigurationError(f"no client for DATABASE_URL_SECRET_ARN: {error}") from error
