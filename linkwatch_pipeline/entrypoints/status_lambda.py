"""The Lambda functions of service status: monitor, processor, teller.

Each zip's `lambda_function.lambda_handler` is one of the handlers.

The parts are made in the first call and kept while the environment lives, so that connections are too.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Protocol

from linkwatch_pipeline.bootstrap import build_app_without_home
from linkwatch_pipeline.domain.cycles import CycleStart
from linkwatch_pipeline.domain.service_status import CYCLE, StatusMessage
from linkwatch_pipeline.entrypoints.json_logs import JsonFormatter, log_as_json
from linkwatch_pipeline.settings import load_status_settings
from linkwatch_pipeline.status_bootstrap import StatusApp, status_app_without_home
from linkwatch_pipeline.use_cases.monitor_services import CycleReport, LastKnown, Monitor
from linkwatch_pipeline.use_cases.process_statuses import process_statuses

logger = logging.getLogger(__name__)

# A request takes 10 s at most, and its status has to be sent before the function is ended.
NEEDED_AT_THE_END = timedelta(seconds=14)


class Context(Protocol):
    """What Lambda tells about an invocation."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


def monitor_handler(event: object, context: Context) -> dict[str, object]:
    """One cycle. Raises what kept it from beginning, so that the function's errors say so."""
    _logs().always["request_id"] = context.aws_request_id
    report = asyncio.run(_cycle(timedelta(milliseconds=context.get_remaining_time_in_millis())))
    return {"services": report.services, "up": report.up, "down": report.down, "unsent": report.unsent}


def processor_handler(event: Mapping[str, Any], context: Context) -> dict[str, list[dict[str, str]]]:
    """A batch of messages; the answer names those that have to come back."""
    from linkwatch_pipeline.adapters.status_store.sqs_queue import message_from_event

    _logs().always["request_id"] = context.aws_request_id
    messages: list[StatusMessage] = []
    failed: list[str] = []
    for record in event["Records"]:
        try:
            messages.append(message_from_event(record))
        except (KeyError, TypeError, ValueError) as error:
            logger.error("no SQS record: %r", error, extra={"action": "process"})
            failed.append(str(record["messageId"]))
    app = _processor_app()
    report = process_statuses(messages, cache=app.cache, history=app.history)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in [*failed, *sorted(report.failed)]]}


def tell_handler(event: object, context: Context) -> dict[str, int]:
    """Changes of services into the outbox of the weekly check. Raises what kept it from telling; repeating is safe."""
    _logs().always["request_id"] = context.aws_request_id
    return {"told": _teller_app().tell()}


async def _cycle(remaining: timedelta) -> CycleReport:
    app = _monitor_app()
    # A number that all environments agree on, so that each cycle begins with another service.
    number = int(app.clock.now().timestamp() // CYCLE.total_seconds())
    async with app.monitoring(begin_within=max(remaining - NEEDED_AT_THE_END, timedelta(0))) as parts:
        return await Monitor(parts, _last_known()).cycle(CycleStart(number=number, due=app.clock.monotonic()))


@cache
def _monitor_app() -> StatusApp:
    return status_app_without_home(
        load_status_settings(os.environ, needs=("DATABASE_URL", "SQS_QUEUE_URL")), os.environ
    )


@cache
def _processor_app() -> StatusApp:
    return status_app_without_home(load_status_settings(os.environ, needs=("DATABASE_URL", "REDIS_URL")), os.environ)


@cache
def _teller_app() -> StatusApp:
    settings = load_status_settings(os.environ, needs=("DATABASE_URL",))
    return status_app_without_home(settings, os.environ, outbox=build_app_without_home(env=os.environ).store)


@cache
def _last_known() -> LastKnown:
    return LastKnown()


@cache
def _logs() -> JsonFormatter:
    return log_as_json()
