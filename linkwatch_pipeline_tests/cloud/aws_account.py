"""What a week on the emulator ended with, and what of it is not as promised."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.runs import Run

LATE_ALARM = "LateRunAlarm"
ALARMS = {
    *(f"{name}ErrorsAlarm" for name in ("Dispatch", "Check", "Notify", "Health", "MailEvents")),
    *(
        LATE_ALARM,
        "CriticalAlarm",
        "HeartbeatAlarm",
        "foundation-DeadLetterAlarm",
        "foundation-MailEventsDeadLetterAlarm",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was found at the end. `ends` are the run's counters, `rows` how its jobs stand one by one."""

    run_id: str
    state: str
    seconds: float
    links: int
    hosts: int
    ends: Mapping[str, int]
    rows: Mapping[str, int]
    expected: Mapping[str, int]
    transitions: int
    notices: Mapping[str, int]
    told_after: tuple[float, ...]  # seconds from a notice's release until SES, the emulator's, took its mail
    mails: int
    waiting: int
    dead_letters: int
    metrics: Mapping[str, float]
    alarms: Mapping[str, str]
    # Whether a look of the last minute, which is the late alarm's period, found the run late; None if that look became
    # older than a minute while we looked ourselves, when the alarm may say both.
    late_lately: bool | None
    denied: tuple[str, ...]  # what a role refused its function
    packed: str
    wrong: tuple[str, ...] = field(default=())

    def to_text(self) -> str:
        waits = self.told_after or (0.0,)
        lines = [
            f"run {self.run_id}: {self.state} after {self.seconds:.1f} s, {self.links} links on {self.hosts} hosts",
            f"counters: {_told(self.ends)}",
            f"job rows: {_told(self.rows)}",
            f"transitions {self.transitions}, notices: {_told(self.notices)}, mails in the emulator's box {self.mails}",
            f"from release to accepted: median {median(waits):.1f} s, longest {max(waits):.1f} s",
            f"work queue {self.waiting}, dead letters {self.dead_letters}, calls denied by a role {len(self.denied)}",
            f"metrics: {', '.join(f'{name} {value:g}' for name, value in sorted(self.metrics.items()))}",
            f"alarms: {', '.join(f'{name} {state}' for name, state in sorted(self.alarms.items()))}",
            "(INSUFFICIENT_DATA: this emulator has no numbers of queues and seldom looks at those of functions)",
            f"code that ran: {self.packed}",
            *(f"WRONG: {problem}" for problem in self.wrong),
        ]
        return "\n".join(lines)


def wrongs(found: Account, run: Run, *, jobs_pending: bool) -> Iterator[str]:
    """A sentence for each."""
    if found.state != "closed" or jobs_pending or run.totals is None:
        yield "the run is not complete"
    if dict(found.ends) != dict(found.rows):
        yield "the counters are not the rows"
    if dict(found.rows) != dict(found.expected):
        yield f"the world said {_told(found.expected)}"
    broken = found.expected.get("broken", 0)
    if (found.transitions, found.mails, Counter(found.notices)) != (broken, broken, Counter(sent=broken)):
        yield f"{broken} links are broken, each one transition, one notice, one mail"
    if found.waiting or found.dead_letters:
        yield "messages are left"
    if found.metrics != {"RunLate": _late(run), "CriticalFindings": 0, "Heartbeat": 1}:
        yield "the metrics are not what the health check found"
    if missing := ALARMS - set(found.alarms):
        yield f"alarms are not there: {', '.join(sorted(missing))}"
    sounding = {name for name, state in found.alarms.items() if state == "ALARM"}
    may_be_late = found.late_lately is not False
    if sounding - ({LATE_ALARM} if may_be_late else set()) or (found.late_lately and not sounding):
        yield f"in alarm: {', '.join(sorted(sounding)) or 'none'}; late within the last minute: {found.late_lately}"
    for message in found.denied:
        yield f"a role denies its function what it needs: {message}"
    if found.packed != "the zip":
        yield "the code did not come from the zip"


def told_after(notice: Notice) -> float:
    """Seconds from its release until its mail was accepted."""
    if notice.sent_at is None or notice.release_at is None:
        return math.inf
    return (notice.sent_at - notice.release_at).total_seconds()


def _late(run: Run) -> float:
    """A week that is played late in the week is late, and that is to be said."""
    return 1.0 if run.closed_at is None else 0.0


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
