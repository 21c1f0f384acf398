"""Which sequences there are, which a person may name, and when a link has none left."""

from __future__ import annotations

import pytest

from linkwatch_pipeline.domain.errors import DamagedRecord, InvalidInput
from linkwatch_pipeline.domain.sequences import (
    MAX_GIVEN_SEQUENCE,
    MAX_SEQUENCE,
    check_given_sequence,
    check_sequence,
    has_next_sequence,
    next_sequence,
)
from linkwatch_pipeline_tests.builders import a_link


@pytest.mark.parametrize("value", [0, 1, 9_999_999_999])
def test_a_sequence_is_accepted(value: int) -> None:
    assert check_sequence(value) == value


@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None])
def test_what_is_no_sequence_is_refused(value: object) -> None:
    for check in (check_sequence, lambda given: check_given_sequence(given, None)):
        with pytest.raises(InvalidInput, match="is not a sequence"):
            check(value)


def test_what_no_store_keeps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="10000000000 is beyond what a store keeps"):
        check_sequence(10_000_000_000)


@pytest.mark.parametrize("link", [None, a_link(), a_link(last_sequence=7)])
def test_a_jump_leaves_room_for_later_checks(link: None) -> None:
    assert check_given_sequence(MAX_GIVEN_SEQUENCE, link) == MAX_GIVEN_SEQUENCE
    with pytest.raises(InvalidInput, match=r"sequence: 1000000001 leaves too few .* from 0 to 1000000000\."):
        check_given_sequence(MAX_GIVEN_SEQUENCE + 1, link)


def test_beyond_the_limit_for_jumps_a_link_goes_on_one_by_one() -> None:
    link = a_link(last_sequence=MAX_GIVEN_SEQUENCE + 4)
    assert check_given_sequence(next_sequence(link), link) == MAX_GIVEN_SEQUENCE + 5
    with pytest.raises(InvalidInput, match=f"from 0 to {MAX_GIVEN_SEQUENCE + 5}"):
        check_given_sequence(MAX_GIVEN_SEQUENCE + 6, link)


def test_after_the_last_sequence_there_is_none() -> None:
    assert next_sequence(a_link(last_sequence=MAX_SEQUENCE - 1)) == MAX_SEQUENCE
    used_up = a_link(last_sequence=MAX_SEQUENCE)
    assert not has_next_sequence(used_up)
    with pytest.raises(DamagedRecord, match="'linkwatch retire guide'"):
        next_sequence(used_up)
    with pytest.raises(InvalidInput, match="is beyond what a store keeps"):
        check_given_sequence(MAX_SEQUENCE + 1, used_up)
