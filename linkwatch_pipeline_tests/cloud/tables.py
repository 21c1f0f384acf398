"""Tables on an emulator, made as `deploy/` makes them, and stores opened on them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from threading import Event
from typing import Any

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.store.dynamodb import CLIENT, DynamoStore
from linkwatch_pipeline.adapters.store.dynamodb_retry import BUDGET, Patience
from linkwatch_pipeline.adapters.store.dynamodb_table import DynamoTable
from linkwatch_pipeline.ports import Clock
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.patient_clients import PATIENCE

# For an emulator on this machine: a stall of the machine is no silence of DynamoDB.
PATIENT = CLIENT.merge(PATIENCE)
PATIENT_BUDGET = timedelta(seconds=100)
SMALL_PAGES = 40  # ministack never ends a page by itself
_numbers = count(1)


@dataclass(frozen=True)
class StandingClock:
    """It is always the same moment, while seconds pass as they do: stories of the past do not expire in the future."""

    moment: datetime = MONDAY

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return SystemClock().monotonic()

    async def sleep(self, duration: timedelta) -> None:
        raise AssertionError("a store does not sleep")


def make_table(cloud: Cloud) -> str:
    """A new table; its name."""
    name = f"linkwatch-{os.getpid()}-{next(_numbers)}"
    create_table(cloud.client("dynamodb"), name)
    return name


def create_table(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )


def store_on(
    client: Any,
    name: str,
    *,
    clock: Clock | None = None,
    page_items: int | None = SMALL_PAGES,
    budget: timedelta | None = None,
    wait: Callable[[timedelta], None] | None = None,
) -> DynamoStore:
    """A store on a client. Without `wait`, waits are a twentieth of what they are outside, and it gives up late."""
    chance = random.Random()  # ids of writes have to differ from those of every other store
    clock = clock if clock is not None else StandingClock()
    budget = budget or (PATIENT_BUDGET if wait is None else BUDGET)
    patience = Patience(clock=clock, chance=chance, wait=wait or _wait_a_little, budget=budget)
    new_id = partial(_hex_id, chance)
    return DynamoStore(DynamoTable(client, name, patience=patience, new_id=new_id, page_items=page_items), clock)


def open_store(cloud: Cloud, name: str) -> DynamoStore:
    """Can be pickled with its arguments, so that another process may call it."""
    return store_on(cloud.client("dynamodb", config=PATIENT), name)


def _wait_a_little(duration: timedelta) -> None:
    Event().wait(duration.total_seconds() / 20)


def _hex_id(chance: random.Random) -> str:
    return f"{chance.getrandbits(64):016x}"
