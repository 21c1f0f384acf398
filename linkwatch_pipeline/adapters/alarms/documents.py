"""An alarm as JSON: as it is posted, appended to a file, and kept until it is taken."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from linkwatch_pipeline.domain.alarms import Alarm, AlarmKind
from linkwatch_pipeline.domain.health_findings import Finding, Severity
from linkwatch_pipeline.domain.timestamps import format_seconds, format_utc, parse_utc

Document = dict[str, Any]


def alarm_document(alarm: Alarm) -> Document:
    """What a destination is given. `text` says it all in words: chat programs show it."""
    return {
        "id": alarm.id,
        "kind": alarm.kind.value,
        "source": alarm.source,
        "healthy": alarm.kind is AlarmKind.RECOVERED,
        "at": format_utc(alarm.at),
        "since": format_utc(alarm.since),
        "text": alarm_text(alarm),
        "findings": [_finding(finding) for finding in alarm.findings],
        "more": alarm.more,
    }


def alarm_text(alarm: Alarm) -> str:
    """One line that says how it stands, and one for each finding."""
    since = format_seconds(alarm.since)
    if alarm.kind is AlarmKind.RECOVERED:
        return f"linkwatch {alarm.source}: healthy again; it was not since {since}."
    lines = [f"linkwatch {alarm.source}: not healthy since {since}."]
    lines += [f"- {finding.code} ({finding.subject}): {finding.detail}" for finding in alarm.findings]
    return "\n".join([*lines, f"- and {alarm.more} more"] if alarm.more else lines)


def read_alarm(document: Document) -> Alarm:
    """The reverse. Raises KeyError, TypeError or ValueError on anything else."""
    return Alarm(
        id=str(document["id"]),
        kind=AlarmKind(document["kind"]),
        source=str(document["source"]),
        at=parse_utc(document["at"]),
        since=parse_utc(document["since"]),
        findings=tuple(_read_finding(finding) for finding in document["findings"]),
        more=int(document["more"]),
    )


def read_moment(text: str | None) -> datetime | None:
    return parse_utc(text) if text is not None else None


def _finding(finding: Finding) -> Document:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "detail": finding.detail,
        "since": format_utc(finding.since),
    }


def _read_finding(document: Document) -> Finding:
    return Finding(
        code=str(document["code"]),
        severity=Severity(document["severity"]),
        subject=str(document["subject"]),
        detail=str(document["detail"]),
        since=parse_utc(document["since"]),
    )
