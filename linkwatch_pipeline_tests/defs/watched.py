"""A small Internet, a home that watches it, and the Dagster definitions run on that home in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.home import FixtureMark
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.bootstrap import App, build_app, make_home
from linkwatch_pipeline.definitions import defs
from linkwatch_pipeline.domain.timestamps import parse_week, week_key
from linkwatch_pipeline.use_cases.observe_week import begin_week, finish_run
from linkwatch_pipeline.use_cases.register import register_link
from linkwatch_pipeline_tests.world import World
from linkwatch_pipeline_tests.world.scripts import Script

WEEK = parse_week("2026-09-28")
NO_PAUSE = {"LINKWATCH_COOLDOWN_SECONDS": "0"}


@dataclass
class Watched:
    """A fixture home that watches every page of a world, open at a moment of the tests' choosing.

    `now` is where the clock starts when the home is opened; it then runs at real speed.
    """

    world: World
    folder: Path
    instance: dg.DagsterInstance
    now: datetime = WEEK
    env: dict[str, str] = field(default_factory=lambda: dict(NO_PAUSE))

    @contextmanager
    def open(self) -> Iterator[App]:
        with build_app(
            self.folder,
            env=self.env,
            clock=StoryClock(SystemClock(), self.now),
            policy=self.world.policy,
            resolver=self.world.resolver,
            ssl_context=self.world.ssl_context,
        ) as app:
            yield app

    def register_all(self, registered_at: datetime) -> None:
        """Watch every page of the world, one link each: `docs.example/guide` is the link `docs-guide`."""
        with self.open() as app:
            for host, site in self.world.sites.items():
                for page in site.pages:
                    register_link(
                        app.store,
                        link_id=f"{host.split('.')[0]}-{page.strip('/')}",
                        url=f"http://{host}{page}",
                        owner="docs-team",
                        notify="docs-team@example.com",
                        now=registered_at,
                    )

    def run_week(self, week: datetime = WEEK) -> dg.ExecuteInProcessResult:
        """The weekly job for a week; a failed one is a result, too."""
        with self.open() as app:
            return self.run_job("weekly_check", app, partition_key=week_key(week))

    def drive_week(self, *, with_retries: bool = True) -> None:
        """Observe the week without Dagster, which is faster."""
        with self.open() as opened, opened.in_week(WEEK).sole_runner() as worker:
            app = opened.in_week(WEEK)
            while not (run := begin_week(app.store, WEEK, now=app.clock.now())).state.is_over:
                app.observe(run, None, worker=worker)
                finish_run(app.store, run.run_id, now=app.clock.now())
                if not with_retries:
                    break

    def run_job(self, name: str, app: App, *, partition_key: str | None = None) -> dg.ExecuteInProcessResult:
        return defs.resolve_job_def(name).execute_in_process(
            partition_key=partition_key,
            instance=self.instance,
            resources={"app": app},
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )

    def requests(self) -> int:
        return len(self.world.log.hits)


@contextmanager
def watched_world(
    folder: Path,
    instance: dg.DagsterInstance,
    sites: Mapping[str, Mapping[str, Script]],
    *,
    story: bool = False,
    registered_at: datetime = WEEK - timedelta(days=30),
) -> Iterator[Watched]:
    """Open the world and make the home, every page registered. Weeks between then and the first run were missed."""
    with World(sites).in_thread() as world:
        pairs = tuple(plain for plain, _ in world.map.hosts.values())
        make_home(folder, env={}, fixture=FixtureMark(pairs=pairs, story=story))
        watched = Watched(world, folder, instance)
        watched.register_all(registered_at)
        yield watched


def materialized(result: dg.ExecuteInProcessResult) -> set[str]:
    """The assets that a run materialised."""
    return {
        event.asset_key.to_user_string()
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    """What the UI shows of an asset that the run materialised, by key; a table as its rows."""
    [shown] = result.asset_materializations_for_node(_node_of(asset))
    return {
        key: [dict(record.data) for record in value.records]
        if isinstance(value, dg.TableMetadataValue)
        else value.value
        for key, value in shown.metadata.items()
    }


def checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """Each check that was evaluated, and whether it passed."""
    return {e.check_name: e.passed for e in result.get_asset_check_evaluations()}


def failure(result: dg.ExecuteInProcessResult) -> str:
    """Everything that a failed run said about why, in one text."""
    said = []
    for event in result.all_events:
        data = event.event_specific_data
        error = getattr(data, "error", None)
        while error is not None:
            said.append(error.message)
            error = error.cause
        description = getattr(getattr(data, "user_failure_data", None), "description", None)
        said.append(description or event.message or "")
    return "\n".join(said)


def _node_of(asset: str) -> str:
    """A graph asset is materialised by its last op."""
    return "observation_batches.close_week" if asset == "observation_batches" else asset
