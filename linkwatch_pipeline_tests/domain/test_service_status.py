"""The message, the row and the Redis value are the original's, and what is not is refused with its field."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.service_status import (
    SeenStatus,
    Service,
    Status,
    StatusMessage,
    check_of,
    decode_check,
    encode_check,
    grouped_by_url,
    record_of,
    row_id,
    seen_in,
    status_of,
    status_value,
    turned,
)

NOW = datetime(2026, 11, 29, 9, 0, 7, 999_000, tzinfo=UTC)
SERVICE = Service(id="s1", user_id="u1", name="api", url="https://api.example.com/health")
MESSAGE = {"service_id": "s1", "user_id": "u1", "url": SERVICE.url, "status": "UP", "latency_ms": 12.35}


def answered(status: int | None, failure: Reason | None = None) -> FetchResult:
    return FetchResult(status=status, failure=failure, final_url=SERVICE.url, started_at=NOW, ended_at=NOW)


def message(**changes: Any) -> StatusMessage:
    return StatusMessage(message_id="m1", sent_at=NOW, body=json.dumps(MESSAGE | changes))


@pytest.mark.parametrize(
    ("status", "failure", "expected"),
    [
        (200, None, Status.UP),
        (204, None, Status.UP),
        (299, None, Status.UP),
        (304, None, Status.DOWN),
        (404, None, Status.DOWN),
        (503, None, Status.DOWN),
        (None, Reason.TIMEOUT, Status.DOWN),
        (200, Reason.TIMEOUT, Status.DOWN),
        (302, Reason.BLOCKED_ADDRESS, Status.DOWN),
    ],
)
def test_up_is_a_2xx_answer_within_the_deadline(status: int | None, failure: Reason | None, expected: Status) -> None:
    assert status_of(answered(status, failure)) is expected


def test_a_message_has_exactly_the_five_fields_of_the_original() -> None:
    check = check_of(SERVICE, answered(200), timedelta(microseconds=12_345.6))
    assert json.loads(encode_check(check)) == MESSAGE
    assert decode_check(encode_check(check)) == check


def test_only_what_our_own_policy_kept_from_being_asked_is_marked_as_refused() -> None:
    assert check_of(SERVICE, answered(None, Reason.BLOCKED_ADDRESS), timedelta(0)).refused
    assert not check_of(SERVICE, answered(None, Reason.TIMEOUT), timedelta(0)).refused


def test_a_message_without_a_latency_is_taken_as_it_is() -> None:
    for body in (MESSAGE | {"latency_ms": None}, {name: MESSAGE[name] for name in MESSAGE if name != "latency_ms"}):
        message = StatusMessage(message_id="m1", sent_at=NOW, body=json.dumps(body))
        assert json.loads(status_value(record_of(message)))["response_time"] is None


def test_ids_that_are_numbers_are_carried_through() -> None:
    assert decode_check(json.dumps(MESSAGE | {"service_id": 7, "user_id": 8})).service_id == "7"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("service_id", None),
        ("service_id", ""),
        ("service_id", "a\nb"),
        ("service_id", "x" * 201),
        ("service_id", True),
        ("user_id", ["u"]),
        ("user_id", "u\x00"),
        ("user_id", "\ud800"),
        ("url", 1.5),
        ("status", "up"),
        ("status", "UNKNOWN"),
        ("latency_ms", "12"),
        ("latency_ms", True),
        ("latency_ms", -1),
        ("latency_ms", float("nan")),
        ("latency_ms", float("inf")),
    ],
)
def test_a_field_that_is_wrong_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_check(json.dumps(MESSAGE | {field: value}))
    assert refused.value.field == field


@pytest.mark.parametrize("field", ["user_id", "url"])
def test_what_another_monitor_read_as_null_keeps_no_status_from_being_written(field: str) -> None:
    assert getattr(decode_check(json.dumps(MESSAGE | {field: None})), field) == ""
    with pytest.raises(InvalidInput, match=field):
        decode_check(json.dumps({name: MESSAGE[name] for name in MESSAGE if name != field}))


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '"UP"', "[" * 100_000, "x" * 200_000])
def test_what_is_no_message_is_refused(body: str) -> None:
    with pytest.raises(InvalidInput):
        decode_check(body)


def test_a_redelivered_message_says_the_same_again() -> None:
    first, second = record_of(message()), record_of(message())
    assert first == second
    assert first.id == row_id("m1") != row_id("m2")
    # Pinned: rows written by an earlier version have to be found again.
    assert str(first.id) == "380927da-12f8-55fd-94a7-448d352f3c8c"


def test_checked_at_is_the_sent_time_in_whole_seconds() -> None:
    value = json.loads(status_value(record_of(message())))
    assert value == {"status": "UP", "response_time": 12.35, "checked_at": "2026-11-29T09:00:07Z"}


def test_a_reader_finds_what_was_written() -> None:
    record = record_of(message())
    expected = SeenStatus(status="UP", response_time=12.35, checked_at=record.checked_at)
    assert seen_in(status_value(record)) == expected


@pytest.mark.parametrize(
    "value", ["", "{}", "[]", '{"status": "UP"}', '{"status": 1, "response_time": {}, "checked_at": 3}']
)
def test_what_is_no_status_is_not_read_as_one(value: str) -> None:
    assert seen_in(value) is None


def test_services_with_one_url_are_asked_together_and_one_that_is_listed_twice_once() -> None:
    same = Service(id="s2", user_id="u2", name="mirror", url=SERVICE.url)
    other = Service(id="s3", user_id="u1", name="web", url="https://www.example.com/")
    assert grouped_by_url([SERVICE, other, same, SERVICE]) == [(SERVICE, same), (other,)]


def test_each_service_is_the_first_of_its_cycle_now_and_then() -> None:
    first = [turned(range(10), cycle)[0] for cycle in range(100)]
    assert all(6 <= first.count(item) <= 14 for item in range(10))
    assert all(sorted(turned(range(10), cycle)) == list(range(10)) for cycle in range(20))
    assert turned([], 3) == []
