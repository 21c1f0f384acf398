"""`linkwatch worker` in a process of its own, on an emulated table and queues."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table
from linkwatch_pipeline_tests.cloud.timed_sqs import make_queues

COMMAND = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Shared:
    """A table and its queues, and the variables by which any process finds them."""

    table: str
    queue_url: str
    dead_letter_url: str
    env: Mapping[str, str]


def make_shared(cloud: Cloud) -> Shared:
    """A new table and new queues."""
    table, (url, dead) = make_table(cloud), make_queues(cloud.client("sqs"), f"work-{uuid4().hex}")
    settings = {
        "LINKWATCH_PROFILE": "aws",
        "LINKWATCH_CONTACT": "links@example.com",
        "LINKWATCH_TABLE": table,
        "LINKWATCH_QUEUE_URL": url,
        "LINKWATCH_DEAD_LETTER_QUEUE_URL": dead,
        "LINKWATCH_ALLOW_ENDPOINT": "true",
    }
    return Shared(table, url, dead, {**cloud.env, **settings})


@contextmanager
def working(shared: Shared, home: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker until the block ends; it is killed then, in the middle of its poll."""
    worker = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--home", str(home), "worker", "--concurrency", "2"],
        env={**os.environ, **shared.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait(timeout=30)
