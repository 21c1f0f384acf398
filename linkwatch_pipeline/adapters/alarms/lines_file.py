"""Alarms as lines of a file, for a log collector or a person."""

from __future__ import annotations

import json
import os
from pathlib import Path

from linkwatch_pipeline.adapters.alarms.documents import alarm_document
from linkwatch_pipeline.domain.alarms import Alarm
from linkwatch_pipeline.domain.errors import AlarmNotTaken


class AlarmLines:
    """`ports.AlarmDestination`: appends one JSON document a line. Other programs may rotate the file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def tell(self, alarm: Alarm) -> None:
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(alarm_document(alarm)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise AlarmNotTaken(f"ops_file {self._file} cannot be written: {error.strerror}.") from error
