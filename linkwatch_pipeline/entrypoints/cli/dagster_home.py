"""Dagster's own folder in a home: where its runs are kept, and how it behaves on one machine."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from linkwatch_pipeline.domain.errors import MissingExtra

_SETTINGS = """\
# Dagster's settings for this linkwatch home. Nothing is reported to anybody.
telemetry:
  enabled: false
# One run of the weekly job at a time; the lock that holds is linkwatch's own.
concurrency:
  runs:
    tag_concurrency_limits:
      - key: linkwatch/kind
        value: weekly
        limit: 1
"""


def prepare_dagster(folder: Path) -> Path:
    """The folder, with its settings file; says which extra is missing if Dagster is not installed."""
    if find_spec("dagster") is None:
        raise MissingExtra("dagster", "running weeks")
    with suppress(FileExistsError), (folder / "dagster.yaml").open("x", encoding="utf-8") as settings:
        settings.write(_SETTINGS)
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"  # before Dagster is imported
    return folder
