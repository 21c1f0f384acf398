"""`linkwatch run` in the profile aws: it sends the week's work to the queue and follows it; a real worker works."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline_tests.builders import a_link
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.shared_worker import make_shared, working
from linkwatch_pipeline_tests.cloud.tables import store_on
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal


def test_a_week_is_followed_to_its_end_while_another_process_checks(
    ministack: Cloud, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = make_shared(ministack)
    for name, value in shared.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
    active_since = week_start(SystemClock().now()) - timedelta(days=1)
    with closing(store_on(ministack.client("dynamodb"), shared.table)) as store:
        for name in ("1", "2"):  # refused by our own policy before any connection: nothing leaves this machine
            store.save_link(a_link(name, f"http://127.0.0.{name}/", active_since=active_since), replaces=None)
    with working(shared, tmp_path / "elsewhere"):
        done = terminal.fine("run", "--json")
    [run] = done.document["runs"]
    assert (run["state"], run["outcomes"]) == ("closed", {"uncertain": 2})
    shown = [line.split(maxsplit=1)[1] for line in done.err.splitlines() if line.startswith(run["run_id"])]
    assert (shown[0], shown[-1]) == ("0/2", "2/2  uncertain 2")
    assert len(shown) == len(set(shown))  # though each of the hosts is a step of its own
    assert not (terminal.home / "linkwatch.sqlite3").exists()
