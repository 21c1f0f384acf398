"""Dagster's own folder in a home: where its runs are kept, what it loads, and how it behaves on one machine."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from linkwatch_pipeline.domain.errors import MissingExtra

WORKSPACE = "workspace.yaml"
_FILES = {
    "dagster.yaml": """\
# Dagster's settings for this linkwatch home. Nothing is reported to anybody, and nobody is asked for an address.
telemetry:
  enabled: false
nux:
  enabled: false
# One run of the weekly job at a time; the lock that holds is linkwatch's own.
concurrency:
  runs:
    tag_concurrency_limits:
      - key: linkwatch/kind
        value: weekly
        limit: 1
""",
    # The same name as in the repository's own workspace.yaml: runs, schedule and sensors are kept under it.
    WORKSPACE: """\
load_from:
  - python_module:
      module_name: linkwatch_pipeline.definitions
      location_name: linkwatch_pipeline
""",
}


def prepare_dagster(folder: Path) -> Path:
    """The folder, with its settings files; says which extra is missing if Dagster is not installed."""
    if find_spec("dagster") is None:
        raise MissingExtra("dagster", "running weeks")
    for name, text in _FILES.items():
        with suppress(FileExistsError), (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"  # before Dagster is imported
    return folder
