"""What people may write down about links and owners, and what they are told when they may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.links import (
    MAX_CONFIRM,
    MAX_MARKER_CHARACTERS,
    Allocation,
    AllocationSlot,
    check_address,
    check_confirm,
    check_link_id,
    check_marker,
    check_team,
    check_url,
)
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link


@pytest.mark.parametrize("value", ["a", "0", "guide", "docs.example.com-setup-1a2b3c4d", "A_b-c.d", "x" * 80])
def test_a_link_id_is_accepted(value: str) -> None:
    assert check_link_id(value) == value


@pytest.mark.parametrize(
    "value", ["", " ", "x" * 81, "-a", ".a", "_a", "a b", "a:b", "a/b", "guide\n", "é", "a\x00", "../etc", None, 7]
)
def test_what_is_no_link_id_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a link id"):
        check_link_id(value)


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ("https://docs.example.com/guide", "https://docs.example.com/guide"),
        ("HTTPS://Docs.Example.COM:443", "https://docs.example.com/"),
        ("http://example.com:80/a?b=c#d", "http://example.com/a?b=c"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
    ],
)
def test_a_url_gets_its_one_spelling(value: str, canonical: str) -> None:
    assert check_url(value) == canonical


@pytest.mark.parametrize(
    "value", ["", "guide", "ftp://example.com/", "javascript:alert(1)", "https://", "//example.com"]
)
def test_what_is_no_page_address_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="Give an absolute URL"):
        check_url(value)


@pytest.mark.parametrize(
    "value",
    [
        "https://user:s3cret@example.com/",
        "https://user:p@s3cret@example.com/",
        "https://user:a/s3cret@example.com/",
        "https://user:a#s3cret@example.com/",
        "https://user:s3cret\n@example.com/",
        "https:user:s3cret@example.com/",
        "ftp://user:s3cret@example.com/",
    ],
)
def test_a_password_in_a_refused_url_is_never_printed(value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_url(value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("value", ["docs", "Docs Team", "a.b_c-d", "7", "x" * 80])
def test_a_team_is_accepted(value: str) -> None:
    assert check_team(value) == value


@pytest.mark.parametrize("value", ["", " docs", "docs ", "a\nb", "x" * 81, "équipe", "a:b", "-docs"])
def test_what_is_no_team_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="is not a team name"):
        check_team(value)


@pytest.mark.parametrize(
    "value", ["a@b.example", "first.last+tag@sub.example.com", "o'neil@example.com", "x@xn--bcher-kva.example"]
)
def test_an_address_is_accepted(value: str) -> None:
    assert check_address(value) == value


@pytest.mark.parametrize(
    "value",
    ["", "a", "@b.example", "a@", "a@b", "a@b.1", "a b@c.example", "Docs <a@b.example>", "a@b.example, c@d.example",
     "a@b.example\n", "a@b.example\r\nBcc: x@y.example", ".a@b.example", "a..b@c.example", "a.@b.example",
     "a@-b.example", "a@b..example", "ä@b.example", "a@bücher.example", '"a b"@c.example', "a@[127.0.0.1]",
     "x" * 65 + "@b.example", "a@" + "b" * 250 + ".example"],
)  # fmt: skip
def test_what_is_no_bare_address_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="Give one bare address"):
        check_address(value)


@pytest.mark.parametrize("value", [None, "guide-v1", "learning resource", "größe", "x" * MAX_MARKER_CHARACTERS])
def test_an_expected_text_is_accepted(value: str | None) -> None:
    assert check_marker(value) == value


@pytest.mark.parametrize("value", ["", "   ", "a\nb", "a\x00b", "a\u202eb", "x" * (MAX_MARKER_CHARACTERS + 1)])
def test_what_cannot_be_expected_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be an expected text"):
        check_marker(value)


@pytest.mark.parametrize("value", [None, 1, MAX_CONFIRM])
def test_a_number_of_confirmations_is_accepted(value: int | None) -> None:
    assert check_confirm(value) == value


@pytest.mark.parametrize("value", [0, -1, MAX_CONFIRM + 1, True, 1.0, "2"])
def test_what_is_no_number_of_confirmations_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a count"):
        check_confirm(value)


@pytest.mark.parametrize("check", [check_link_id, check_url, check_team, check_address, check_marker])
@given(value=st.text(max_size=300))
def test_whatever_is_given_is_taken_or_refused_in_few_words(check: Callable[[str], object], value: str) -> None:
    problem = ""
    try:
        check(value)
    except InvalidInput as refused:
        problem = str(refused)
    assert len(problem) < 500


def test_the_next_sequence_follows_the_highest_applied_or_promised() -> None:
    weekly = Allocation(run_id=RUN_ID, sequence=4, host="docs.example.com", config_version=1)
    retry = Allocation(run_id=f"{RUN_ID}~retry-1", sequence=9, host="docs.example.com", config_version=1)
    assert a_link().highest_sequence == -1
    assert a_link(last_sequence=3).highest_sequence == 3
    assert a_link(last_sequence=3, allocations={AllocationSlot.WEEKLY: weekly}).highest_sequence == 4
    both = {AllocationSlot.WEEKLY: weekly, AllocationSlot.RETRY: retry}
    assert a_link(last_sequence=3, allocations=both).highest_sequence == 9
    assert a_link(last_sequence=12, allocations=both).highest_sequence == 12


def test_a_link_has_no_naive_times() -> None:
    with pytest.raises(ValueError, match="active_since"):
        a_link(active_since=MONDAY.replace(tzinfo=None))
