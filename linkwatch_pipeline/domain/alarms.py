"""When on-call is told of linkwatch's own health: at once when something critical begins, daily, and when it is over.

Apart from owner mail. What was told is remembered, so that a restart neither repeats an alarm nor forgets one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from linkwatch_pipeline.domain.health_findings import Finding, Severity

REMIND_EVERY = timedelta(days=1)
MOST_FINDINGS_TOLD = 20


class AlarmKind(StrEnum):
    """`unhealthy` when something critical begins, `still_unhealthy` once a day after that, `recovered` at its end."""

    UNHEALTHY = "unhealthy"
    STILL_UNHEALTHY = "still_unhealthy"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One message to on-call. `since` is when linkwatch was first seen unhealthy; `more` findings are left out.

    `id` is the same whenever the message is repeated. `source` is who looked: `health`, or the watchdog behind it.
    """

    id: str
    kind: AlarmKind
    source: str
    at: datetime
    since: datetime
    findings: tuple[Finding, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
    """What is remembered between looks, all moments UTC.

    `looked_at` is the heartbeat. `since` is None while all is well; otherwise when that ended, `told_at` when on-call
    was told last, and `told` which critical findings it knows of. `waiting` are the alarms that a destination, by its
    name, did not take yet, oldest first.
    """

    looked_at: datetime | None = None
    since: datetime | None = None
    told_at: datetime | None = None
    told: frozenset[str] = frozenset()
    waiting: Mapping[str, tuple[Alarm, ...]] = field(default_factory=dict)


def after_look(
    before: AlarmState, findings: Iterable[Finding], *, source: str, destinations: Iterable[str], now: datetime
) -> AlarmState:
    """What is remembered after a look: an alarm that is due waits for every destination.

    What waits for a destination that is no longer configured is dropped.
    """
    critical = [finding for finding in findings if finding.severity is Severity.CRITICAL]
    alarm = due_alarm(before, critical, source=source, now=now)
    more = (alarm,) if alarm is not None else ()
    waiting = {name: (*before.waiting.get(name, ()), *more) for name in destinations}
    after = replace(before, looked_at=now, waiting=waiting)
    if not critical:
        return replace(after, since=None, told_at=None, told=frozenset())
    if alarm is None:
        return after
    # One that comes and goes is told once until the next reminder.
    known = before.told if alarm.kind is AlarmKind.UNHEALTHY else frozenset()
    return replace(after, since=alarm.since, told_at=now, told=known | {alarm_key(finding) for finding in critical})


def due_alarm(state: AlarmState, critical: Sequence[Finding], *, source: str, now: datetime) -> Alarm | None:
    """What on-call is to be told now. Args: critical: the critical findings, the worst first."""
    kind = _due_kind(state, critical, now)
    if kind is None:
        return None
    return Alarm(
        id=f"{source}:{now:%Y%m%dT%H%M%S.%fZ}:{kind.value}",
        kind=kind,
        source=source,
        at=now,
        since=state.since or now,
        findings=tuple(critical[:MOST_FINDINGS_TOLD]),
        more=max(len(critical) - MOST_FINDINGS_TOLD, 0),
    )


def _due_kind(state: AlarmState, critical: Sequence[Finding], now: datetime) -> AlarmKind | None:
    if not critical:
        return AlarmKind.RECOVERED if state.since is not None else None
    if state.since is None or state.told_at is None or {alarm_key(f) for f in critical} - state.told:
        return AlarmKind.UNHEALTHY
    # A clock that was set back does not silence reminders for longer than a day.
    return AlarmKind.STILL_UNHEALTHY if abs(now - state.told_at) >= REMIND_EVERY else None


def alarm_key(finding: Finding) -> str:
    """What counts as the same fault: each run is one of its own, of notices each kind of trouble."""
    return f"{finding.code}:{finding.subject}" if finding.code.startswith("run_") else finding.code


def is_taken(state: AlarmState, destination: str, alarm: Alarm) -> AlarmState:
    """The state after a destination took an alarm."""
    left = tuple(waiting for waiting in state.waiting.get(destination, ()) if waiting.id != alarm.id)
    return replace(state, waiting={**state.waiting, destination: left})
