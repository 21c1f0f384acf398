"""The parts of the profile `aws`: a table, a queue and metrics that many machines share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from linkwatch_pipeline.adapters.clock import wait
from linkwatch_pipeline.domain.errors import (
    ConfigurationError,
    DeadLettersElsewhere,
    DeadLettersLost,
    MissingExtra,
    QueueError,
    StoreError,
)
from linkwatch_pipeline.domain.hosts import Chance
from linkwatch_pipeline.ports import Clock, Metrics, Queue, Store
from linkwatch_pipeline.settings import Settings

_SECOND = timedelta(seconds=1)
# What is kept at the end of a function's call: for sending a copy of its message (`use_cases.outages`), and for letting
# the host go and committing after a fetch, which begins two seconds before nothing may be asked of the table any more.
KEPT_FOR_SENDING = timedelta(seconds=1)
KEPT_AFTER_FETCH = timedelta(seconds=8)


def is_emulated(settings: Settings) -> bool:
    """Whether the table is on an emulator, on purpose: `allow_endpoint` alone may be left over from a test."""
    if not settings.allow_endpoint:
        return False
    with _extra_needed():
        from linkwatch_pipeline.adapters.store.dynamodb import is_amazons, make_client
    return not is_amazons(make_client(allow_endpoint=True))


def open_table(settings: Settings, clock: Clock, chance: Chance) -> Store:
    with _extra_needed():
        from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
    return DynamoStore.open(
        settings.table,
        clock=clock,
        chance=chance,
        wait=wait,
        new_id=lambda: secrets.token_hex(8),
        allow_endpoint=settings.allow_endpoint,
    )


def store_until(store: Store, ends_at: float | None) -> Store:
    """The store for a call that is over at a moment: nothing is asked that might still go on then."""
    if ends_at is None:
        return store
    from linkwatch_pipeline.adapters.store.dynamodb import LONGEST_REQUEST, DynamoStore

    if not isinstance(store, DynamoStore):
        return store
    return store.until(ends_at - LONGEST_REQUEST.total_seconds() - KEPT_FOR_SENDING.total_seconds())


def open_cloudwatch(settings: Settings) -> Metrics:
    """Numbers in CloudWatch, under the namespace that is set."""
    from linkwatch_pipeline.adapters.metrics.cloudwatch import CloudWatchMetrics

    return CloudWatchMetrics.connect(namespace=settings.metrics_namespace)


def open_shared_queue(settings: Settings, *, in_function: bool) -> Queue:
    """The queue of all workers. Raises ConfigurationError in a profile that has none, or without its URLs.

    Args: in_function: whether calls have to end within some seconds, so that nothing is waited for long.
    """
    if settings.profile != "aws":
        raise ConfigurationError(
            "the profile \"local\" has no queue that workers could share; 'linkwatch run' works on its runs. "
            'Set profile = "aws".'
        )
    missing = [key for key in ("queue_url", "dead_letter_queue_url") if not getattr(settings, key)]
    if missing:
        raise ConfigurationError(f"the shared queue needs {' and '.join(missing)}; the stack tells both.")
    from linkwatch_pipeline.adapters.queue.sqs import SqsQueue

    connect = partial(SqsQueue.connect, queue_url=settings.queue_url, dead_letter_url=settings.dead_letter_queue_url)
    return connect(wait=_SECOND, answers_within=_SECOND, attempts=2) if in_function else connect()


def verify_service(settings: Settings, store: Store, open_queue: Callable[[], Queue]) -> None:
    """Raise ConfigurationError, naming the setting, unless the table and both queues let us work."""
    try:
        store.verify()
    except StoreError as why:
        raise ConfigurationError(f"the table of the setting table, {settings.table!r}, cannot be used: {why}") from why
    queue = open_queue()
    try:
        queue.verify()
    except DeadLettersElsewhere as why:
        raise ConfigurationError(
            f"the queue of the setting dead_letter_queue_url, {settings.dead_letter_queue_url}, is another: {why}"
        ) from why
    except DeadLettersLost as why:
        raise ConfigurationError(
            f"the queue of the setting dead_letter_queue_url, {settings.dead_letter_queue_url}, is not there: {why}"
        ) from why
    except QueueError as why:
        raise ConfigurationError(f"the queue of the setting queue_url, {settings.queue_url}: {why}") from why


@contextmanager
def _extra_needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra("aws", "the profile 'aws'") from error
