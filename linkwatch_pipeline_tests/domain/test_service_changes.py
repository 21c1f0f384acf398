"""A service's state changes once per change, after as many failures as are asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.service_changes import ServiceChange, ServiceState, advanced
from linkwatch_pipeline.domain.service_status import Status, StatusRecord

START = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


def seen(status: str, minute: int, *, refused: bool = False) -> StatusRecord:
    return StatusRecord(
        id=UUID(int=minute),
        service_id="s1",
        user_id="u1",
        status=Status(status),
        response_time=1.0,
        checked_at=START + timedelta(minutes=minute),
        refused=refused,
    )


def played(statuses: str, *, confirm: int = 1) -> tuple[ServiceState, list[ServiceChange]]:
    """One check a minute: `u` saw it up, `d` down, `r` was refused."""
    state, changes = ServiceState(service_id="s1"), []
    for minute, letter in enumerate(statuses):
        record = seen("UP" if letter == "u" else "DOWN", minute, refused=letter == "r")
        state, change = advanced(state, record, confirm=confirm)
        changes += [change] if change is not None else []
    return state, changes


@pytest.mark.parametrize(
    ("statuses", "confirm", "changes"),
    [
        ("uuu", 1, ""),
        ("uuddduu", 1, "d2 u5"),
        ("d", 1, "d0"),
        ("ududu", 1, "d1 u2 d3 u4"),
        ("uddu", 3, ""),
        ("udddu", 3, "d3 u4"),
        ("uddudddd", 3, "d6"),
        ("dd", 3, ""),
        ("ddd", 3, "d2"),
        ("urrrru", 1, ""),
        ("udrrdd", 3, "d5"),
    ],
)
def test_changes_are_told_once_and_after_as_many_failures_as_asked_for(
    statuses: str, confirm: int, changes: str
) -> None:
    _, made = played(statuses, confirm=confirm)
    at = [
        f"{change.to_status.value[0].lower()}{(change.checked_at - START) // timedelta(minutes=1)}" for change in made
    ]
    assert " ".join(at) == changes


def test_a_change_is_named_by_the_service_and_its_version_and_says_since_when_it_was_otherwise() -> None:
    _, (down, up) = played("uuddu")
    assert (down.id, up.id) == ("service:s1:2", "service:s1:3")
    assert (down.since, up.since) == (START, START + timedelta(minutes=2))


def test_a_check_older_than_the_newest_changes_nothing() -> None:
    state, _ = played("uud")
    assert advanced(state, seen("UP", 1), confirm=1) == (state, None)


@given(st.text("udr", max_size=40), st.integers(1, 4))
def test_changes_alternate_and_each_has_a_version_of_its_own(statuses: str, confirm: int) -> None:
    state, changes = played(statuses, confirm=confirm)
    told = [change.to_status for change in changes]
    assert all(before is not after for before, after in pairwise(told))
    assert len({change.id for change in changes}) == len(changes)
    assert state.version >= len(changes)
