"""Metrics on a laptop: one JSON line per number, in a file that cannot grow without bound."""

from __future__ import annotations

import json
import logging
import os
import threading
from datetime import datetime
from pathlib import Path

from linkwatch_pipeline.domain.timestamps import format_utc

logger = logging.getLogger(__name__)

ROTATE_AT_BYTES = 5 * 1024 * 1024


class LocalMetrics:
    """Appends {"name", "value", "unit", "at"} to `file`; at 5 MB the file becomes `<file>.1`, replacing an older one.

    A number that cannot be written is logged and dropped: no check ever fails for its metric.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def put(self, name: str, value: float, *, unit: str = "Count", at: datetime) -> None:
        """Append one number. Raises ValueError for NaN and infinities, which JSON does not have."""
        line = json.dumps({"name": name, "value": value, "unit": unit, "at": format_utc(at)}, allow_nan=False)
        try:
            with self._lock:
                self._append(line + "\n")
        except OSError as exc:
            logger.warning("metric not written", extra={"action": "put_metric", "metric": name, "error": str(exc)})

    def _append(self, line: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if self._file.exists() and self._file.stat().st_size + len(line) > ROTATE_AT_BYTES:
            os.replace(self._file, self._file.with_name(self._file.name + ".1"))
        with self._file.open("a", encoding="utf-8") as file:
            file.write(line)
