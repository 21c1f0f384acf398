"""What the use cases need from the outside world. Adapters fit these Protocols; `bootstrap` is where that is checked.

A store method is one complete write: after it, all of it is durable or none. All times are aware UTC.
Every method may raise StoreError (QueueError, DeliveryError); more is said where it happens.
"""

from __future__ import annotations

from linkwatch_pipeline.ports.clock import Clock, RunBlocking
from linkwatch_pipeline.ports.damaged import Damaged
from linkwatch_pipeline.ports.fetcher import Fetcher, HopGate
from linkwatch_pipeline.ports.health import AlarmDestination, AlarmMemory, Metrics
from linkwatch_pipeline.ports.history import HistoryStore
from linkwatch_pipeline.ports.hosts import HostStore
from linkwatch_pipeline.ports.made_up_history import History, PlayedWeek, ScriptedRun
from linkwatch_pipeline.ports.notifier import Mail, Notifier
from linkwatch_pipeline.ports.outbox import OutboxStore
from linkwatch_pipeline.ports.queue import Queue, Receipt, StrayLetter
from linkwatch_pipeline.ports.registry import RegistryStore
from linkwatch_pipeline.ports.reports import Reports
from linkwatch_pipeline.ports.runs import Progress, RunStore
from linkwatch_pipeline.ports.service_status import (
    ChangeLog,
    RowEnd,
    ServiceDirectory,
    StatusCache,
    StatusHistory,
    StatusQueue,
)
from linkwatch_pipeline.ports.store import Store, StoredRecord
from linkwatch_pipeline.ports.warehouse import ExportedWeek, Warehouse

__all__ = [
    "AlarmDestination",
    "AlarmMemory",
    "ChangeLog",
    "Clock",
    "Damaged",
    "ExportedWeek",
    "Fetcher",
    "History",
    "HistoryStore",
    "HopGate",
    "HostStore",
    "Mail",
    "Metrics",
    "Notifier",
    "OutboxStore",
    "PlayedWeek",
    "Progress",
    "Queue",
    "Receipt",
    "RegistryStore",
    "Reports",
    "RowEnd",
    "RunBlocking",
    "RunStore",
    "ScriptedRun",
    "ServiceDirectory",
    "StatusCache",
    "StatusHistory",
    "StatusQueue",
    "Store",
    "StoredRecord",
    "StrayLetter",
    "Warehouse",
]
