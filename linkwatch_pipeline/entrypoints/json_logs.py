"""One JSON object per log line, for machines (SPEC 7.5): no bodies, no secrets of URLs."""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.timestamps import format_utc

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_URL = re.compile(r"https?://[^\s'\"<>]+")


class JsonFormatter(logging.Formatter):
    """time, level, logger, message, what `extra` held, and of an exception its kind, words and places.

    Args: always: fields of every line, such as a request's id.
    """

    def __init__(self, always: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.always = dict(always or {})

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": format_utc(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "message": _safe(record.getMessage()),
            **self.always,
        }
        line.update({name: _safe(value) for name, value in vars(record).items() if name not in _ORDINARY})
        if record.exc_info is not None and record.exc_info[1] is not None:
            line.update(_told(record.exc_info[1]))
        return json.dumps(line, default=str)


def log_as_json(stream: TextIO | None = None, *, always: Mapping[str, str] | None = None) -> JsonFormatter:
    """Let everything from INFO up be one JSON line on a stream (stdout if None), instead of what was set before.

    Libraries that write requests and headers are heard from WARNING up only.
    """
    formatter = JsonFormatter(always)
    handler = logging.StreamHandler(stream if stream is not None else sys.stdout)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for talkative in ("boto3", "botocore", "urllib3", "httpx", "httpcore", "asyncio"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    return formatter


def _told(error: BaseException) -> dict[str, Any]:
    """No local values and no source lines: only where it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "error_message": _safe(str(error)), "error_at": places}


def _safe(value: object) -> object:
    return _URL.sub(lambda url: redacted_url(url[0]), value) if isinstance(value, str) else value
