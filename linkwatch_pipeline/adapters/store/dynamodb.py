"""The system of record in one DynamoDB table, with every promise of `ports.Store` (docs/reference/dynamodb.md).

A writer reads, decides, and writes on condition that nothing it read has changed; if something has, it begins again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config

from linkwatch_pipeline.adapters import aws_client
from linkwatch_pipeline.adapters.store.dynamodb_chains import DynamoChains
from linkwatch_pipeline.adapters.store.dynamodb_days import NoticeDays
from linkwatch_pipeline.adapters.store.dynamodb_guard import Guard
from linkwatch_pipeline.adapters.store.dynamodb_history import DynamoHistory
from linkwatch_pipeline.adapters.store.dynamodb_hosts import DynamoHosts
from linkwatch_pipeline.adapters.store.dynamodb_items import WRITE_ID, Key, key_attributes, text
from linkwatch_pipeline.adapters.store.dynamodb_journal import Journal
from linkwatch_pipeline.adapters.store.dynamodb_outbox import DynamoOutbox
from linkwatch_pipeline.adapters.store.dynamodb_parts import LinkParts
from linkwatch_pipeline.adapters.store.dynamodb_registry import DynamoRegistry
from linkwatch_pipeline.adapters.store.dynamodb_restore import DynamoRestore
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict, Patience
from linkwatch_pipeline.adapters.store.dynamodb_runs import DynamoRuns
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.hosts import Chance
from linkwatch_pipeline.ports import Clock

# Requests are repeated by `Patience`, whose chance and clock are ours, and not by botocore beneath it.
CLIENT = Config(
    connect_timeout=2,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 1},
    max_pool_connections=50,
    tcp_keepalive=True,
)
LONGEST_REQUEST = timedelta(seconds=5)
_TRIAL: Key = ("TRIAL", "TRIAL")
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


class DynamoStore(DynamoRegistry, DynamoRuns, DynamoChains, DynamoHosts, DynamoOutbox, DynamoHistory, DynamoRestore):
    """`ports.Store` on DynamoDB. Threads may share one."""

    def __init__(self, table: DynamoTable, clock: Clock, *, guard: Guard | None = None) -> None:
        self._unguarded = table
        self._guard = guard or Guard(table, clock)
        self._table = guarded = table.guarded_by(self._guard.refuse_writing)
        self._clock = clock
        self._journal = Journal(guarded, clock)
        self._parts = LinkParts(guarded, clock)
        self._days = NoticeDays(guarded, clock)

    @classmethod
    def open(
        cls,
        table: str,
        *,
        clock: Clock,
        chance: Chance,
        wait: Callable[[timedelta], None],
        new_id: Callable[[], str],
        allow_endpoint: bool = False,
    ) -> DynamoStore:
        """Open the store in a table that is there. Region and credentials are found the ordinary boto3 way.

        Args:
            wait: blocks for a while, between two attempts.
            new_id: a name that no other write has or had.
            allow_endpoint: whether the endpoint may be another than Amazon's.
        Raises: ConfigurationError. Nothing is asked yet: a table that is not there shows with the first call.
        """
        client = make_client(allow_endpoint=allow_endpoint)
        patience = Patience(clock=clock, chance=chance, wait=wait)
        return cls(DynamoTable(client, table, patience=patience, new_id=new_id), clock)

    def until(self, moment: float) -> DynamoStore:
        """The same store, of which nothing is asked after a moment (of the clock's monotonic seconds): OutOfTime."""
        return DynamoStore(self._unguarded.until(moment), self._clock, guard=self._guard)

    def verify(self) -> None:
        """Read and write for trial; nothing stays of it. Raises StoreError.

        The write is one on condition of an item that is never there: DynamoDB judges name, keys, role and capacity
        before it finds that out.
        """
        self._guard.refuse_use()
        self._unguarded.get(_TRIAL)
        with suppress(Conflict):
            self._unguarded.put(key_attributes(_TRIAL), was={WRITE_ID: text("never")})

    def close(self) -> None:
        """Release the connections. The store cannot be used afterwards."""
        self._table.close()


def make_client(*, allow_endpoint: bool) -> Any:
    """A client of `dynamodb`, for an endpoint that may hold our truth. Raises ConfigurationError."""
    client = aws_client.make_client("dynamodb", config=CLIENT, called="DynamoDB")
    if not allow_endpoint and not is_amazons(client):
        raise ConfigurationError(
            f"the endpoint {client.meta.endpoint_url} is not Amazon's: what is written there may not last. Take "
            "AWS_ENDPOINT_URL or endpoint_url away, or set allow_endpoint = true if you mean it, as for an emulator."
        )
    return client


def is_amazons(client: Any) -> bool:
    """Whether a client speaks with Amazon, and not with an emulator."""
    return (urlsplit(str(client.meta.endpoint_url)).hostname or "").endswith(_AMAZON)
