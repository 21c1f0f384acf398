"""A world in a process of its own, seen from the test that started it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwatch_pipeline_tests.world.address_map import AddressMap, Mapped
from linkwatch_pipeline_tests.world.log import RequestLog

_ROOT = Path(__file__).resolve().parents[2]


class WorldProcess(Mapped):
    """Starts `python -m linkwatch_pipeline_tests.world`; killing any other process leaves it alive.

    Args:
        hosts: by host name, each as JSON (see `scripts.site_from_json`).
        folder: an empty one, for its files. `map_file` there is what another process reads
            (`AddressMap.from_json`) to visit this world.
    """

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
        self._hosts = hosts
        self._log_file = folder / "requests.jsonl"
        self._spec_file = folder / "spec.json"
        self._week_file = folder / "week"
        self.map_file = folder / "map.json"
        self._process: subprocess.Popen[str] | None = None

    @property
    def week(self) -> int:
        return int(self._week_file.read_text())

    @week.setter
    def week(self, week: int) -> None:
        # Replaced whole: the world reads it at any moment.
        fresh = self._week_file.with_suffix(".new")
        fresh.write_text(str(week))
        fresh.replace(self._week_file)

    @property
    def log(self) -> RequestLog:
        """What it saw up to now."""
        if not self._log_file.exists():
            return RequestLog()
        with self._log_file.open(encoding="utf-8") as lines:
            return RequestLog.read(lines)

    def __enter__(self) -> WorldProcess:
        self.week = 0
        self._spec_file.write_text(json.dumps({"hosts": self._hosts}))
        command = [sys.executable, "-m", "linkwatch_pipeline_tests.world", "--spec", str(self._spec_file)]
        command += ["--log", str(self._log_file), "--week-file", str(self._week_file)]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        if not text:
            self.__exit__()
            raise RuntimeError("the world did not start; see its error output above")
        self._map = AddressMap.from_json(text)
        self.map_file.write_text(text)
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
