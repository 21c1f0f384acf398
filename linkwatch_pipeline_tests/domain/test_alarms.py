"""On-call is told at once, once, daily, and at the end."""

from __future__ import annotations

from collections.abc import Sequence

from linkwatch_pipeline.domain.alarms import Alarm, AlarmState, after_look, is_taken
from linkwatch_pipeline.domain.health_findings import Finding, Severity
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, after


def a_finding(
    code: str = "run_late", subject: str = RUN_ID, severity: Severity = Severity.CRITICAL, detail: str = "resume it"
) -> Finding:
    return Finding(code=code, severity=severity, subject=subject, detail=detail, since=MONDAY)


class OnCall:
    """Looks one after the other, each an amount of time after MONDAY."""

    def __init__(self, *destinations: str) -> None:
        self.state = AlarmState()
        self.destinations = destinations or ("hook",)

    def look(self, *findings: Finding, **when: float) -> list[str]:
        """What waits for the first destination after a look, by kind; it is then taken."""
        self.state = after_look(
            self.state, findings, source="health", destinations=self.destinations, now=after(**when)
        )
        told = self.waiting(self.destinations[0])
        for alarm in told:
            self.state = is_taken(self.state, self.destinations[0], alarm)
        return [alarm.kind.value for alarm in told]

    def waiting(self, name: str) -> Sequence[Alarm]:
        return self.state.waiting[name]


def test_a_fault_is_told_at_once_then_daily_and_its_end_once() -> None:
    on_call = OnCall()
    assert on_call.look(minutes=25) == []
    assert on_call.look(a_finding(), minutes=30) == ["unhealthy"]
    assert [on_call.look(a_finding(), minutes=m) for m in (35, 40, 24 * 60)] == [[], [], []]
    assert on_call.look(a_finding(), days=1, minutes=30) == ["still_unhealthy"]
    assert on_call.look(a_finding(), days=1, minutes=35) == []
    assert on_call.look(days=1, minutes=40) == ["recovered"]
    assert on_call.look(days=1, minutes=45) == []
    assert on_call.state.looked_at == after(days=1, minutes=45)


def test_a_warning_alone_wakes_nobody() -> None:
    assert OnCall().look(a_finding("week_missed", severity=Severity.WARNING), hours=1) == []


def test_a_suspect_run_is_told_at_once_though_something_else_is_wrong_already() -> None:
    on_call = OnCall()
    overdue = a_finding("notice_overdue", "guide:2")
    assert on_call.look(overdue, minutes=1) == ["unhealthy"]
    assert on_call.look(overdue, a_finding("run_suspect"), minutes=6) == ["unhealthy"]
    assert on_call.state.since == after(minutes=1)


def test_one_more_overdue_notice_is_no_news_but_another_run_is() -> None:
    on_call = OnCall()
    on_call.look(a_finding("notice_overdue", "guide:2"), minutes=1)
    assert on_call.look(a_finding("notice_overdue", "home:2"), minutes=6) == []
    assert on_call.look(a_finding("run_suspect", "2026-09-21T09:00:00Z"), minutes=11) == ["unhealthy"]
    assert on_call.look(a_finding("run_suspect", RUN_ID), minutes=16) == ["unhealthy"]


def test_a_fault_that_comes_and_goes_while_another_stays_is_told_once_a_day() -> None:
    on_call = OnCall()
    late, letters = a_finding(), a_finding("dead_letters", "queue")
    assert on_call.look(late, letters, minutes=0) == ["unhealthy"]
    assert [on_call.look(late, *more, minutes=5 * n) for n, more in enumerate([[], [letters], []], 1)] == [[], [], []]
    assert on_call.look(late, days=1) == ["still_unhealthy"]
    assert on_call.look(late, letters, days=1, minutes=5) == ["unhealthy"]


def test_a_clock_that_was_set_back_does_not_silence_the_reminder() -> None:
    on_call = OnCall()
    on_call.look(a_finding(), days=400)
    assert on_call.look(a_finding(), days=1) == ["still_unhealthy"]


def test_what_one_destination_does_not_take_waits_for_it_in_order_under_the_same_id() -> None:
    on_call = OnCall("file", "hook")
    on_call.look(a_finding(), minutes=0)
    first = on_call.waiting("hook")
    on_call.look(minutes=5)
    assert [alarm.kind.value for alarm in on_call.waiting("hook")] == ["unhealthy", "recovered"]
    assert on_call.waiting("hook")[0] == first[0]
    assert on_call.waiting("file") == ()


def test_what_waits_for_a_destination_that_is_gone_is_dropped() -> None:
    before = after_look(AlarmState(), [a_finding()], source="health", destinations=["old"], now=MONDAY)
    later = after_look(before, [a_finding()], source="health", destinations=["new"], now=after(minutes=5))
    assert later.waiting == {"new": ()}


def test_an_alarm_names_twenty_findings_and_counts_the_rest() -> None:
    state = after_look(
        AlarmState(),
        [a_finding(subject=f"run {n}") for n in range(23)],
        source="health",
        destinations=["hook"],
        now=MONDAY,
    )
    [alarm] = state.waiting["hook"]
    assert (len(alarm.findings), alarm.more) == (20, 3)
