"""Findings about telling people: notices, the addresses they go to, and mutes (SPEC 11)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from linkwatch_pipeline.domain.health_facts import HealthFacts
from linkwatch_pipeline.domain.health_findings import MOST_NAMED, Finding, Severity, named
from linkwatch_pipeline.domain.mail_events import copy_trouble
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus

MUTE_EXPIRED_FOR = timedelta(days=7)
MUTE_UNUSED_AFTER = timedelta(days=14)
NOTICE_TOO_OLD_AFTER = timedelta(minutes=5)


def notice_findings(facts: HealthFacts) -> Iterator[Finding]:
    """One finding a notice, or one for all with the same fault if they are many."""
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for finding in _single_notices(facts):
        by_code[finding.code].append(finding)
    for alike in by_code.values():
        yield from alike if len(alike) <= MOST_NAMED else [_together(alike)]


def _together(alike: list[Finding]) -> Finding:
    """The oldest speaks for all: a server that is down for a day is one fault and not hundreds."""
    first = min(alike, key=lambda finding: (finding.since, finding.subject))
    subjects = [finding.subject for finding in alike]
    return replace(
        first, subject="outbox", detail=f"{len(alike)} notices: {named(subjects)}. The oldest: {first.detail}"
    )


def _single_notices(facts: HealthFacts) -> Iterable[Finding]:
    for notice in facts.unsettled:
        if notice.status is NoticeStatus.UNKNOWN:
            yield Finding(
                code="delivery_unknown",
                severity=Severity.WARNING,
                subject=notice.transition_id,
                detail="The provider's answer was lost; the mail may or may not have been accepted."
                + _given_up(notice),
                since=notice.created_at,
            )
        elif notice.status is NoticeStatus.FAILED:
            yield Finding(
                code="notice_undeliverable",
                severity=Severity.CRITICAL,
                subject=notice.transition_id,
                detail=f"The mail was refused for good: {notice.last_error}",
                since=notice.created_at,
            )
        elif notice.status is NoticeStatus.HELD or notice.release_at is None:
            continue
        elif notice.owner is None:
            yield Finding(
                code="notice_without_owner",
                severity=Severity.WARNING,
                subject=notice.transition_id,
                detail=f"Link {notice.link_id!r} has no owner, so nobody can be told; set one with "
                f"'linkwatch update {notice.link_id} --owner TEAM'.",
                since=notice.created_at,
            )
        elif facts.now > notice.release_at + NOTICE_TOO_OLD_AFTER:
            yield Finding(
                code="notice_overdue",
                severity=Severity.CRITICAL,
                subject=notice.transition_id,
                detail=f"The notice is {notice.status.value} longer than 5 minutes after its release"
                + (f"; last error: {notice.last_error}" if notice.last_error else "; run 'linkwatch deliver'."),
                since=notice.release_at,
            )


def _given_up(notice: Notice) -> str:
    """What a person has to say when nothing happens by itself any more."""
    if notice.next_attempt_at is not None:
        return ""
    return (
        f" It was tried {notice.attempts} times and is left to you. Ask its owner: 'linkwatch deliver --arrived "
        f"{notice.transition_id}', or '--again {notice.transition_id}' to send it once more."
    )


def mute_findings(facts: HealthFacts) -> Iterable[Finding]:
    for view in facts.mutes:
        mute = view.mute
        if mute.ended_at is None and mute.until <= facts.now < mute.until + MUTE_EXPIRED_FOR:
            yield Finding(
                code="mute_expired",
                severity=Severity.WARNING,
                subject=mute.target,
                detail=f"The mute ran out; changes are told again. {view.broken} of its {view.links} links are broken.",
                since=mute.until,
            )
        unused = not view.links or (not view.broken and facts.now >= mute.since + MUTE_UNUSED_AFTER)
        if mute.is_active(facts.now) and unused:
            yield Finding(
                code="mute_unused",
                severity=Severity.WARNING,
                subject=mute.target,
                detail=f"None of the {view.links} links that it covers is broken; end it with "
                f"'linkwatch unmute {mute.target}'.",
                since=mute.since,
            )


def address_findings(facts: HealthFacts) -> Iterable[Finding]:
    """By team, never by address: findings are shown in logs."""
    for trouble in facts.address_troubles:
        since = min(notice.sent_at or notice.created_at for notice in trouble.notices)
        ids = named([notice.transition_id for notice in trouble.notices])
        mend = f"'linkwatch owner {trouble.team!r} ADDRESS'"
        if trouble.status is NoticeStatus.BOUNCED:
            yield Finding(
                code="address_bounces",
                severity=Severity.CRITICAL,
                subject=trouble.team,
                detail=f"Mails came back and told nobody: {ids} ({trouble.notices[-1].last_error}). Tell the "
                f"team yourself, and give it an address that works: {mend}. Later notices are still tried.",
                since=since,
            )
        else:
            yield Finding(
                code="address_complains",
                severity=Severity.WARNING,
                subject=trouble.team,
                detail=f"Somebody reported mails as unwanted: {ids}. Ask the team; it may want another address: "
                f"{mend}. Later notices are still tried.",
                since=since,
            )
    for notice in facts.lost_copies:
        yield Finding(
            code="copy_came_back",
            severity=Severity.WARNING,
            subject=notice.transition_id,
            detail=f"One of the teams {', '.join(notice.also_used_by)} did not get its copy ({copy_trouble(notice)}); "
            "give it an address that works.",
            since=notice.sent_at or notice.created_at,
        )
