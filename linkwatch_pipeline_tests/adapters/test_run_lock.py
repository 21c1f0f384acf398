"""The run lock: one holder at a time, and a dead one is buried by whoever comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.run_lock import hold_run_lock
from linkwatch_pipeline.domain.errors import AlreadyRunning


def test_nobody_is_buried_who_left_in_order(tmp_path: Path) -> None:
    buried: list[str] = []
    for worker in ("first", "second"):
        with hold_run_lock(tmp_path / "run.lock", worker=worker, bury=buried.append):
            pass
    assert buried == []


def test_a_second_holder_is_refused_and_leaves_the_first_ones_name(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with hold_run_lock(lock, worker="first", bury=pytest.fail):
        with pytest.raises(AlreadyRunning, match="another process"):
            with hold_run_lock(lock, worker="second", bury=pytest.fail):
                pass
        assert lock.read_text() == "first"


def test_whoever_dies_while_burying_leaves_the_dead_to_the_next_one(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    lock.write_text("dead")

    def die(worker: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), hold_run_lock(lock, worker="second", bury=die):
        pass
    buried: list[str] = []
    with hold_run_lock(lock, worker="third", bury=buried.append):
        assert lock.read_text() == "third"
    assert buried == ["dead"]
