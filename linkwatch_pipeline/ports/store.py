"""The store whole: all roles together, and all that is moved when one store takes over from another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from linkwatch_pipeline.domain.hosts import HostRecord
from linkwatch_pipeline.domain.links import Link, Owner
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, Run
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports.history import HistoryStore
from linkwatch_pipeline.ports.hosts import HostStore
from linkwatch_pipeline.ports.outbox import OutboxStore
from linkwatch_pipeline.ports.registry import RegistryStore
from linkwatch_pipeline.ports.runs import RunStore
from linkwatch_pipeline.ports.warehouse import ExportedWeek

# Everything that a store keeps for others.
StoredRecord = (
    Owner | Link | Run | JobRecord | HostChain | HostRecord | Observation | Transition | Notice | Mute | ExportedWeek
)


class Store(RegistryStore, RunStore, HostStore, HistoryStore, OutboxStore, Protocol):
    """The system of record, whole."""

    def restore(self, records: Iterable[StoredRecord], *, source: str) -> int:
        """Put the records of another store as they are into this one, which has to be empty; how many.

        A store without large transactions may keep a part of them when it is interrupted. It goes on when the same
        records are put again, and takes no others. Until then nothing else can be written (ImportUnfinished).

        Args:
            records: in the order of `use_cases.move_history`: each after what it belongs to.
            source: names these records.
        Raises: StaleWrite if there is anything in the store, unless it is a part of these records.
        """
        ...

    def verify(self) -> None:
        """Read and write for trial; nothing stays of it. Raises StoreError: it cannot be worked with now, and why."""
        ...

    def is_import_unfinished(self) -> bool:
        """Whether a `restore` was interrupted, so that what is there is a part of what shall be there."""
        ...

    def close(self) -> None:
        """Release files and connections. The store cannot be used afterwards."""
        ...
