"""The Lambda functions: parse the event, call one use case, say what failed of a batch.

All settings come from `LINKWATCH_*` variables. Clients are built once for each process, while it starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache, wraps
from typing import Any, Protocol

from linkwatch_pipeline.adapters.notify.ses_events import read_events
from linkwatch_pipeline.adapters.queue.messages import read_message
from linkwatch_pipeline.bootstrap import App, build_app_without_home, new_worker
from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput, LinkwatchError
from linkwatch_pipeline.domain.health import is_healthy
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.domain.timestamps import parse_utc, week_start
from linkwatch_pipeline.entrypoints.json_logs import JsonFormatter, log_as_json
from linkwatch_pipeline.use_cases.dispatch import HasTime
from linkwatch_pipeline.use_cases.reconcile import reconcile_mail_events
from linkwatch_pipeline.use_cases.start_week import check_startable
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.watch_health import watch_health
from linkwatch_pipeline.use_cases.work_on_queue import begin_on_queue, check_messages, tick_on_queue

logger = logging.getLogger(__name__)

# Of a dispatcher's time, what is kept for sending the heads once all jobs exist.
KEPT_FOR_HEADS_MS = 120_000

Event = Mapping[str, Any]


class Context(Protocol):
    """What Lambda tells about an invocation."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


Handler = Callable[[Event, Context], dict[str, Any]]


def _logged(handler: Handler) -> Handler:
    """One line a call with its duration, and every line with the request's id. What fails is logged and raised."""

    @wraps(handler)
    def call(event: Event, context: Context) -> dict[str, Any]:
        logs().always["request_id"] = context.aws_request_id
        clock, action = app().clock, handler.__name__
        began = clock.monotonic()
        try:
            told = handler(event, context)
        except Exception:
            logger.exception("function failed", extra={"action": action, "duration_ms": _ms(clock.monotonic() - began)})
            raise
        logger.info(
            "function ended", extra={"action": action, "duration_ms": _ms(clock.monotonic() - began), "told": told}
        )
        return told

    return call


@_logged
def dispatch(event: Event, context: Context) -> dict[str, Any]:
    """{"action": "dispatch", "scheduled_time": T} begins or resumes the run of T's week; {"action": "tick"} ticks.

    What does not fit into this call's time is left to the next tick.
    """
    parts = app()

    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > KEPT_FOR_HEADS_MS

    if event.get("action") == "tick":
        return {"sent": asyncio.run(_tick(parts, has_time))}
    intended_at = check_startable(_intended_at(event), now=parts.clock.now(), field="scheduled_time")
    run = begin_on_queue(
        parts.store,
        parts.shared_queue,
        intended_at,
        pace=parts.pace,
        now=parts.clock.now(),
        allowances=parts.allowances,
        has_time=has_time,
    )
    return {"run_id": run.run_id, "state": run.state.value, "expected": run.expected}


@_logged
def check(event: Event, context: Context) -> dict[str, Any]:
    """Check the jobs of SQS messages; those that failed come back. All is over before the function's own time is."""
    messages, failed = _messages(event["Records"])
    ends_at = app().clock.monotonic() + context.get_remaining_time_in_millis() / 1000
    done = asyncio.run(_check(app(), list(messages.values()), ends_at))
    failed += [message_id for message_id, ended in zip(messages, done, strict=True) if not ended]
    return _batch_failures(failed)


@_logged
def notify(event: Event, context: Context) -> dict[str, Any]:
    """Send the notices that are due; what does not fit into this call's time waits for the next."""
    parts = app()
    if parts.settings.mail == "files":
        raise ConfigurationError("a function has no folder for mails: set LINKWATCH_MAIL to ses.")
    return asdict(parts.deliver(life=timedelta(milliseconds=context.get_remaining_time_in_millis())))


@_logged
def health(event: Event, context: Context) -> dict[str, Any]:
    """Look whether all is well; publishes numbers and a heartbeat. Its role may only read the table."""
    parts = app()
    findings = watch_health(
        parts.store,
        parts.metrics,
        clock=parts.clock,
        breaker=parts.breaker,
        surveyor=surveyor(),
        queue=parts.watched_queue,
        only_reads=True,
    )
    for finding in findings:
        about = {"code": finding.code, "severity": finding.severity.value, "subject": finding.subject}
        logger.warning("finding", extra={"action": "health", **about})
    return {"healthy": is_healthy(findings), "findings": len(findings)}


@_logged
def mail_events(event: Event, context: Context) -> dict[str, Any]:
    """Bring what SES told, through SNS and SQS, to the notices; messages that cannot be read come back."""
    failed = []
    for record in event["Records"]:
        try:
            told = [each for each in read_events(record["body"]) if each is not None]
            reconcile_mail_events(app().store, told)
        except (LinkwatchError, RecursionError):
            logger.exception("mail event not read", extra={"action": "reconcile", "message_id": record["messageId"]})
            failed.append(record["messageId"])
    return _batch_failures(failed)


@cache
def app() -> App:
    """The parts of this process."""
    return build_app_without_home(env=os.environ)


@cache
def surveyor() -> Surveyor:
    """What this process remembers of all links, so that not every look reads them."""
    return Surveyor()


@cache
def logs() -> JsonFormatter:
    """How this process logs."""
    return log_as_json()


async def _tick(parts: App, has_time: HasTime) -> int:
    async with parts.checking(worker=new_worker("tick")) as check_parts:
        return await tick_on_queue(check_parts, parts.shared_queue, pace=parts.pace, has_time=has_time)


async def _check(parts: App, messages: list[CheckJob], ends_at: float) -> list[bool]:
    async with parts.checking(worker=new_worker("lambda"), ends_at=ends_at) as check_parts:
        return await check_messages(check_parts, parts.shared_queue, messages)


def _intended_at(event: Event) -> datetime:
    """The intended time of the week that a schedule's time falls into, so that a late trigger is the same run."""
    mend = 'Give {"action": "dispatch", "scheduled_time": "<aws.scheduler.scheduled-time>"} or {"action": "tick"}.'
    if event.get("action") != "dispatch":
        raise InvalidInput("action", f"{event.get('action')!r} is none", mend)
    try:
        return week_start(parse_utc(event["scheduled_time"]))
    except (KeyError, OverflowError, TypeError, ValueError) as exc:
        raise InvalidInput("scheduled_time", f"{event.get('scheduled_time')!r} is no time in UTC", mend) from exc


def _messages(records: Iterable[Event]) -> tuple[dict[str, CheckJob], list[str]]:
    """The jobs by message id, and the ids of the texts that are none."""
    messages: dict[str, CheckJob] = {}
    failed: list[str] = []
    for record in records:
        try:
            messages[record["messageId"]] = read_message(record["body"])
        except ValueError as problem:
            logger.error(str(problem), extra={"action": "drop", "message_id": record["messageId"]})
            failed.append(record["messageId"])
    return messages, failed


def _batch_failures(message_ids: Iterable[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _prepare() -> None:
    """While the process starts, when it has more of the machine than later: what every call needs."""
    logs()
    app().store  # noqa: B018


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    _prepare()
