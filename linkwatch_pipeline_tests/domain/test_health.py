"""Is linkwatch well? Silence is a fault, and each fault has its finding."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from linkwatch_pipeline.domain.health import is_healthy, missing_heartbeat, verdict
from linkwatch_pipeline.domain.health_facts import HealthFacts, RunProgress, Stamp, UnseenLinks
from linkwatch_pipeline.domain.health_findings import Finding, Severity
from linkwatch_pipeline.domain.mutes import Mute, MuteView
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import Ruling, RulingKind, Run, RunState, missed_run
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY, RETRY_ID, RUN_ID, a_run, after
from linkwatch_pipeline_tests.mail_builders import a_notice

FINISHED = a_run(state=RunState.CLOSED, closed_at=after(minutes=20))


def facts(**changes: Any) -> HealthFacts:
    """An hour after MONDAY, everything is well."""
    well: dict[str, Any] = {
        "now": after(hours=1),
        "watched_since": after(days=-30),
        "runs": (FINISHED,),
        "unsettled": (),
        "dead_letters": 0,
    }
    return HealthFacts(**{**well, **changes})


def only(found: tuple[Finding, ...]) -> Finding:
    (finding,) = found
    return finding


def test_without_a_finding_all_is_well() -> None:
    assert verdict(facts()) == ()
    assert is_healthy(())


@pytest.mark.parametrize(
    ("now", "watched_since", "missing"),
    [
        (after(minutes=4, seconds=59), after(days=-1), False),
        (after(minutes=5), after(days=-1), True),
        (after(days=6, hours=23), after(days=-1), True),
        (after(minutes=5), None, False),  # nothing is watched
        (after(minutes=5), after(minutes=1), False),  # registered after the run was due: next week's
        (after(days=3), MONDAY, True),
    ],
)
def test_a_weekly_run_that_was_never_created_is_critical(
    now: datetime, watched_since: datetime | None, missing: bool
) -> None:
    found = verdict(facts(now=now, watched_since=watched_since, runs=()))
    assert bool(found) is missing
    if missing:
        finding = only(found)
        assert (finding.code, finding.severity, finding.subject) == ("run_missing", Severity.CRITICAL, RUN_ID)
        assert finding.since == MONDAY
        assert not is_healthy(found)


def test_last_weeks_run_does_not_stand_for_this_weeks() -> None:
    assert only(verdict(facts(now=after(days=8)))).subject == "2026-10-05T09:00:00Z"


def test_a_retry_run_does_not_stand_for_the_weekly_run() -> None:
    retry = a_run(run_id=RETRY_ID, retry_of=RUN_ID, state=RunState.CLOSED, closed_at=after(minutes=40))
    assert only(verdict(facts(runs=(retry,)))).code == "run_missing"


@pytest.mark.parametrize(
    ("run", "now", "codes"),
    [
        (a_run(), after(minutes=10), []),
        (a_run(dispatched=7), after(minutes=11), ["run_half_dispatched"]),
        (a_run(state=RunState.OPEN), after(minutes=30), []),
        (a_run(state=RunState.OPEN), after(minutes=31), ["run_late"]),
        (a_run(), after(minutes=31), ["run_half_dispatched", "run_late"]),
        (a_run(state=RunState.CLOSED, closed_at=after(hours=5)), after(hours=6), []),  # over: nothing left to do
        (a_run(run_id=RETRY_ID, retry_of=RUN_ID, started_at=after(hours=1), state=RunState.OPEN), after(hours=1), []),
    ],
)
def test_an_open_run_is_late_or_half_dispatched(run: Run, now: datetime, codes: list[str]) -> None:
    runs = (run,) if run.run_id == RUN_ID else (FINISHED, run)
    found = verdict(facts(now=now, runs=runs))
    assert sorted(finding.code for finding in found) == codes
    assert all(finding.severity is Severity.CRITICAL and finding.subject == run.run_id for finding in found)


def test_an_older_run_still_open_is_found_too() -> None:
    old = a_run(after(days=-7), state=RunState.OPEN)
    finding = only(verdict(facts(runs=(old, FINISHED))))
    assert (finding.code, finding.subject, finding.since) == ("run_late", "2026-09-21T09:00:00Z", old.deadline_at)


@pytest.mark.parametrize(
    ("notice", "code", "severity"),
    [
        (a_notice(release_at=after(minutes=54)), "notice_overdue", Severity.CRITICAL),
        (a_notice(release_at=after(minutes=55)), None, None),
        (a_notice(release_at=after(hours=2)), None, None),
        (a_notice(status=NoticeStatus.SENDING), "notice_overdue", Severity.CRITICAL),
        (a_notice(status=NoticeStatus.UNKNOWN), "delivery_unknown", Severity.WARNING),
        (a_notice(status=NoticeStatus.FAILED), "notice_undeliverable", Severity.CRITICAL),
        (a_notice(owner=None), "notice_without_owner", Severity.WARNING),
    ],
)
def test_a_notice_that_nobody_got_is_found(notice: Notice, code: str | None, severity: Severity | None) -> None:
    found = verdict(facts(unsettled=(notice,)))
    assert [(f.code, f.severity, f.subject) for f in found] == ([(code, severity, "guide:2")] if code else [])


def test_an_overdue_notice_says_why_or_what_to_do() -> None:
    assert "linkwatch deliver" in only(verdict(facts(unsettled=(a_notice(),)))).detail
    assert "disk full" in only(verdict(facts(unsettled=(a_notice(last_error="disk full"),)))).detail


def test_a_mail_in_doubt_that_was_given_up_says_what_ends_the_warning() -> None:
    waiting, given_up = (
        a_notice(status=NoticeStatus.UNKNOWN, attempts=5, next_attempt_at=due) for due in (after(hours=1), None)
    )
    assert "--arrived" not in only(verdict(facts(unsettled=(waiting,)))).detail
    detail = only(verdict(facts(unsettled=(given_up,)))).detail
    assert "linkwatch deliver --arrived guide:2" in detail
    assert "--again guide:2" in detail


HELD = a_run(
    state=RunState.CLOSED,
    closed_at=after(minutes=20),
    ruling=Ruling(kind=RulingKind.HELD, at=after(minutes=21), why="7 of 9 hosts broke anew"),
)


def test_a_held_run_is_critical_until_somebody_decides_and_its_notices_are_not_overdue() -> None:
    held = (a_notice(status=NoticeStatus.HELD), a_notice(status=NoticeStatus.HELD, run_id=None))
    finding = only(verdict(facts(runs=(HELD,), unsettled=held)))
    assert (finding.code, finding.severity, finding.subject) == ("run_suspect", Severity.CRITICAL, RUN_ID)
    assert finding.since == after(minutes=21)
    assert finding.detail.startswith("7 of 9 hosts broke anew. Its 1 notices are held")
    assert f"linkwatch discard-notices {RUN_ID}" in finding.detail
    decided = replace(HELD, ruling=Ruling(kind=RulingKind.RELEASED, at=after(minutes=30), by="ops"))
    assert verdict(facts(runs=(decided,))) == ()


@pytest.mark.parametrize(
    ("run", "now", "codes"),
    [
        (FINISHED, after(minutes=25), []),
        (FINISHED, after(minutes=26), ["run_unreleased"]),  # it closed at 09:20
        (a_run(state=RunState.OPEN), after(minutes=29), []),
        (a_run(state=RunState.OPEN), after(minutes=36), ["run_late", "run_unreleased"]),
        (replace(FINISHED, ruling=Ruling(kind=RulingKind.RELEASED, at=after(minutes=21))), after(minutes=26), []),
    ],
)
def test_a_notice_that_nobody_releases_is_not_overdue_but_its_run_is_found(
    run: Run, now: datetime, codes: list[str]
) -> None:
    found = verdict(facts(now=now, runs=(run,), unsettled=(a_notice(release_at=None),)))
    assert sorted(finding.code for finding in found) == codes


def muted(links: int = 1, broken: int = 1, **fields: Any) -> MuteView:
    given = {"since": after(days=-20), "until": after(days=7), "muted_by": None, **fields}
    return MuteView(mute=Mute(target="link:guide", reason="r", **given), links=links, broken=broken)


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (muted(), None),
        (muted(broken=0), "mute_unused"),
        (muted(broken=0, since=after(days=-13)), None),  # its site may just have begun to be moved
        (muted(links=0, broken=0, since=after(days=-1)), "mute_unused"),  # nothing of that name is watched any more
        (muted(until=after()), "mute_expired"),
        (muted(until=after(days=-7)), None),  # told long enough
        (muted(until=after(), ended_at=after(days=-1)), None),  # a person ended it
        (muted(broken=0, ended_at=after(days=-1)), None),
    ],
)
def test_mutes_that_ran_out_or_are_not_needed_are_warnings(view: MuteView, code: str | None) -> None:
    found = verdict(facts(mutes=(view,)))
    assert [(f.code, f.severity, f.subject) for f in found] == (
        [(code, Severity.WARNING, "link:guide")] if code is not None else []
    )


def test_dead_letters_are_critical() -> None:
    finding = only(verdict(facts(dead_letters=3)))
    assert (finding.code, finding.severity) == ("dead_letters", Severity.CRITICAL)
    assert finding.detail.startswith("3 jobs")


def test_a_week_that_is_not_in_the_warehouse_is_a_warning() -> None:
    found = verdict(facts(unexported_weeks=(after(days=-84),)))
    assert (only(found).code, only(found).severity) == ("week_unexported", Severity.WARNING)
    assert only(found).subject == "2026-07-06"
    assert is_healthy(found)


def test_the_worst_and_oldest_comes_first() -> None:
    found = verdict(
        facts(
            runs=(a_run(state=RunState.OPEN),),
            unsettled=(a_notice(owner=None, created_at=after(days=-9)), a_notice(release_at=after(minutes=1))),
            dead_letters=1,
        )
    )
    assert [f.code for f in found] == ["notice_overdue", "run_late", "dead_letters", "notice_without_owner"]


def stalled(**changes: Any) -> RunProgress:
    """An open run whose hosts have waited since its dispatch, and none of whose jobs has ended."""
    given: dict[str, Any] = {"run": a_run(state=RunState.OPEN), "moved_at": MONDAY, "due_since": MONDAY}
    return RunProgress(**{**given, **changes})


@pytest.mark.parametrize(
    ("progress", "now", "codes"),
    [
        (stalled(), after(minutes=10), []),
        (stalled(), after(minutes=11), ["run_stalled"]),
        (stalled(moved_at=after(minutes=8)), after(minutes=11), []),  # it goes on
        (stalled(due_since=None), after(minutes=11), []),  # every host asked for a pause
        (stalled(due_since=after(minutes=9)), after(minutes=11), []),  # the pause has just ended
        (stalled(moved_at=after(minutes=9), resent=("docs.example.com",)), after(minutes=11), ["run_resending"]),
    ],
)
def test_an_open_run_that_nobody_works_on_is_stalled(progress: RunProgress, now: datetime, codes: list[str]) -> None:
    found = verdict(facts(now=now, runs=(progress.run,), progress=(progress,)))
    assert [finding.code for finding in found] == codes


def test_a_missed_week_stays_a_warning() -> None:
    missed = missed_run(MONDAY - WEEK, after(minutes=5))
    finding = only(verdict(facts(missed_weeks=(missed,))))
    assert (finding.code, finding.severity, finding.subject) == ("week_missed", Severity.WARNING, missed.run_id)
    assert finding.since == MONDAY - WEEK


def test_a_running_week_that_a_wrong_clock_recorded_as_missed_is_missing() -> None:
    assert only(verdict(facts(runs=(missed_run(MONDAY, after(days=8)),)))).code == "run_missing"


def test_links_that_nothing_was_observed_of_are_counted_and_some_named() -> None:
    names = tuple(f"link-{n}" for n in range(5))
    finding = only(verdict(facts(unseen=UnseenLinks(count=7, examples=names, since=after(days=-40)))))
    assert (finding.code, finding.severity, finding.since) == ("links_unseen", Severity.WARNING, after(days=-40))
    assert "Of 7 watched links" in finding.detail
    assert "link-0, link-1, link-2, link-3, link-4 and 2 more" in finding.detail
    many = only(verdict(facts(unseen=UnseenLinks(count=1000, examples=names, is_more=True))))
    assert "1000 or more" in many.detail


@pytest.mark.parametrize(("ahead", "found"), [(30, False), (31, True), (-3600, False)])
def test_what_was_written_in_the_future_tells_of_clocks_that_differ(ahead: int, found: bool) -> None:
    findings = verdict(facts(newest=Stamp(what=RUN_ID, at=after(hours=1, seconds=ahead))))
    assert [(f.code, f.subject) for f in findings] == ([("clock_skew", RUN_ID)] if found else [])


def test_many_notices_with_the_same_fault_are_one_finding() -> None:
    waiting = [a_notice(transition_id=f"link-{n}:1", last_error="421 busy") for n in range(6)]
    assert len(verdict(facts(unsettled=tuple(waiting[:5])))) == 5
    finding = only(verdict(facts(unsettled=tuple(waiting))))
    assert (finding.code, finding.subject) == ("notice_overdue", "outbox")
    assert "6 notices: link-0:1, link-1:1, link-2:1, link-3:1, link-4:1 and 1 more" in finding.detail
    assert "421 busy" in finding.detail


@pytest.mark.parametrize(
    ("beat_at", "missing"),
    [(None, True), (after(minutes=50), False), (after(minutes=49), True), (after(hours=3), True)],
)
def test_a_heartbeat_of_more_than_ten_minutes_ago_is_missing(beat_at: datetime | None, missing: bool) -> None:
    finding = missing_heartbeat(beat_at, now=after(hours=1))
    assert (finding is not None) is missing
