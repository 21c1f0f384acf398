"""One Dagster instance per module, and homes that watch a small Internet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from linkwatch_pipeline_tests.defs.watched import Watched, watched_world
from linkwatch_pipeline_tests.world.scripts import Script

Watch = Callable[..., Watched]


@pytest.fixture(autouse=True, scope="session")
def _silent() -> Iterator[None]:
    """Nothing that Dagster does here is reported to anybody."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
        yield


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def watch(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Watch]:
    """Makes a world of these pages and a home that watches them all; `story` makes it one that plays past weeks."""
    with ExitStack() as stack:

        def make(sites: Mapping[str, Mapping[str, Script]], **how: Any) -> Watched:
            return stack.enter_context(watched_world(tmp_path / "home", instance, sites, **how))

        yield make
