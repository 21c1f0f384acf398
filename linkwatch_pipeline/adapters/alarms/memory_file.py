"""What on-call was told, in one file of the home, replaced whole; a lock lets one process tell at a time."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.alarms.documents import alarm_document, read_alarm, read_moment
from linkwatch_pipeline.domain.alarms import AlarmState
from linkwatch_pipeline.domain.json_text import read_json
from linkwatch_pipeline.domain.timestamps import format_utc

logger = logging.getLogger(__name__)


class AlarmFile:
    """`ports.AlarmMemory`. A file that cannot be read is as if nothing had been told: twice beats never."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @contextmanager
    def alone(self) -> Iterator[AlarmState | None]:
        """Never waits: whoever tells may wait for a webhook. Without a lock (a full disk) it tells all the same."""
        descriptor = self._open_lock()
        try:
            yield self.read() if descriptor is None or _lock(descriptor) else None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def read(self) -> AlarmState:
        """Nothing remembered if there is no file yet."""
        try:
            return _read(read_json(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return AlarmState()
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            logger.warning("what on-call was told is lost", extra={"action": "read_alarms", "error": str(error)})
            return AlarmState()

    def save(self, state: AlarmState) -> None:
        """Raises OSError."""
        fresh = self._file.with_name(f"{self._file.name}.new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(_document(state), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._file)

    def _open_lock(self) -> int | None:
        try:
            return os.open(
                self._file.with_name(f"{self._file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            logger.warning("alarms are told without a lock", extra={"action": "lock_alarms", "error": str(error)})
            return None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _document(state: AlarmState) -> dict[str, Any]:
    return {
        "looked_at": format_utc(state.looked_at) if state.looked_at is not None else None,
        "since": format_utc(state.since) if state.since is not None else None,
        "told_at": format_utc(state.told_at) if state.told_at is not None else None,
        "told": sorted(state.told),
        "waiting": {name: [alarm_document(alarm) for alarm in alarms] for name, alarms in state.waiting.items()},
    }


def _read(document: dict[str, Any]) -> AlarmState:
    return AlarmState(
        looked_at=read_moment(document["looked_at"]),
        since=read_moment(document["since"]),
        told_at=read_moment(document["told_at"]),
        told=frozenset(str(key) for key in document["told"]),
        waiting={
            str(name): tuple(read_alarm(alarm) for alarm in alarms) for name, alarms in document["waiting"].items()
        },
    )
