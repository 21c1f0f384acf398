"""Log lines for machines: one JSON object each, nothing of what must not be told."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from linkwatch_pipeline.entrypoints.json_logs import log_as_json

SECRET = "https://user:pw@docs.example.com/a?token=s3cr3t&page=2"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    opened = io.StringIO()
    log_as_json(opened, always={"request_id": "r-1"})
    yield opened
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_the_message_its_time_and_what_was_said_beside_it(stream: io.StringIO) -> None:
    logging.getLogger("here").info("link checked", extra={"action": "check", "link_id": "guide", "reason": None})
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "INFO", "logger": "here", "message": "link checked", "request_id": "r-1",
        "action": "check", "link_id": "guide", "reason": None,
    }  # fmt: skip


def test_secrets_of_urls_are_not_told_wherever_they_stand(stream: io.StringIO) -> None:
    try:
        raise ValueError(f"cannot visit {SECRET}")
    except ValueError:
        logging.getLogger("here").exception("no luck with %s", SECRET, extra={"where": SECRET})
    assert "s3cr3t" not in stream.getvalue()
    assert "pw@" not in stream.getvalue()
    (line,) = lines(stream)
    assert "page=2" in line["message"]
    assert (line["error"], line["error_at"][0].split(":")[0]) == ("ValueError", "test_json_logs.py")


def test_libraries_that_tell_of_every_request_are_not_heard(stream: io.StringIO) -> None:
    logging.getLogger("httpx").info("HTTP Request: GET https://docs.example.com/")
    logging.getLogger("botocore.endpoint").debug("Making request")
    assert lines(stream) == []
