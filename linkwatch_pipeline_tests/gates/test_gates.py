"""SPEC 15, gate by gate: what needs no cloud. The claims stand in the walks; one that does not hold raises."""

from __future__ import annotations

from pathlib import Path

from linkwatch_pipeline_tests.gates import walks


def test_gate_state_changes(tmp_path: Path) -> None:
    walks.walk_state_changes(tmp_path)


def test_gate_restart_and_replay(tmp_path: Path) -> None:
    walks.walk_restart_and_replay(tmp_path)


def test_gate_ambiguous_answers(tmp_path: Path) -> None:
    walks.walk_ambiguous_answers(tmp_path)


def test_gate_host_coordination(tmp_path: Path) -> None:
    walks.walk_host_coordination(tmp_path)


def test_gate_missed_schedule(tmp_path: Path) -> None:
    walks.walk_missed_schedule(tmp_path)


def test_the_checkpoints_of_the_reference_program_can_be_walked(tmp_path: Path) -> None:
    walks.walk_checkpoints(tmp_path)
