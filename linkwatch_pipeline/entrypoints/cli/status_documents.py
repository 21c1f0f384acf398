"""The JSON shapes of `linkwatch status show`."""

from __future__ import annotations

from datetime import datetime

from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.service_status import SeenStatus
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.use_cases.show_status import ShownStatus

Document = dict[str, object]


def shown_status_document(shown: ShownStatus, *, now: datetime) -> Document:
    """A service and its status as a reader sees it; `age_s` in whole seconds."""
    seen, age = shown.seen, shown.age(now)
    return {
        "service_id": shown.service.id,
        "user_id": shown.service.user_id,
        "name": shown.service.name,
        "url": redacted_url(shown.service.url),
        "status": shown.status,
        "response_time": seen.response_time if seen is not None else None,
        "checked_at": format_seconds(seen.checked_at) if seen is not None else None,
        "age_s": int(age.total_seconds()) if age is not None else None,
        "source": shown.source.value if shown.source is not None else None,
    }


def seen_status_document(seen: SeenStatus) -> Document:
    """One row of a service's history."""
    return {
        "checked_at": format_seconds(seen.checked_at),
        "status": seen.status,
        "response_time": seen.response_time,
    }
