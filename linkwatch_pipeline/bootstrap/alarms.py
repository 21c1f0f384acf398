"""The ways to on-call, apart from owner mail, and what on-call was told."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from linkwatch_pipeline.adapters.home import Home
from linkwatch_pipeline.ports import AlarmDestination, AlarmMemory
from linkwatch_pipeline.settings import Settings


def open_alarm_destinations(
    settings: Settings, home: Home, *, user_agent: str, ssl_context: ssl.SSLContext | None
) -> Mapping[str, AlarmDestination]:
    """Where on-call is told, by the name of its setting."""
    from linkwatch_pipeline.adapters.alarms.lines_file import AlarmLines
    from linkwatch_pipeline.adapters.alarms.webhook import AlarmWebhook

    found: dict[str, AlarmDestination] = {}
    if settings.ops_file:
        found["ops_file"] = AlarmLines(home.folder / settings.ops_file)
    if settings.ops_webhook:
        found["ops_webhook"] = AlarmWebhook(settings.ops_webhook, user_agent=user_agent, ssl_context=ssl_context)
    return found


def open_alarm_memory(file: Path) -> AlarmMemory:
    """What on-call was told, as a file remembers it."""
    from linkwatch_pipeline.adapters.alarms.memory_file import AlarmFile

    return AlarmFile(file)
