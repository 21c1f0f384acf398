"""What one look at a URL means: `classify`, the single function that every path uses (SPEC 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from linkwatch_pipeline.domain.reasons import Reason

# Raised when the meaning of a status or failure changes, so that stored rows say by which rules they were judged.
RULES_VERSION = 1


class Outcome(StrEnum):
    """The meaning of one observation. Only `reachable` and `broken` can move a link's state."""

    REACHABLE = "reachable"
    BROKEN = "broken"
    THROTTLED = "throttled"
    UNCERTAIN = "uncertain"
    CONTENT_CHANGED = "content_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An outcome with its reason; a reachable page needs none."""

    outcome: Outcome
    reason: Reason | None = None


def classify(
    status: int | None,
    *,
    marker_found: bool | None = None,
    content_complete: bool = True,
    failure: Reason | None = None,
    challenged: bool = False,
) -> Verdict:
    """What a response, or its absence, means.

    Args:
        status: the final HTTP status, None when there was no usable answer.
        marker_found: None when no marker is expected, else whether it was in the bytes read.
        content_complete: False when the body was cut at the limit.
        failure: why the look did not end properly. A 2xx whose body never ended is a failure;
            the body of any other status carries no verdict, so the fetcher reports none there.
        challenged: a named bot-challenge header or mark was seen.
    """
    if failure is not None:
        return Verdict(outcome=Outcome.UNCERTAIN, reason=failure)
    if status is None:
        return Verdict(outcome=Outcome.UNCERTAIN, reason=Reason.TIMEOUT)
    if status == 429:
        return Verdict(outcome=Outcome.THROTTLED, reason=Reason.RATE_LIMITED)
    if challenged:
        return Verdict(outcome=Outcome.UNCERTAIN, reason=Reason.BOT_CHALLENGE)
    if 200 <= status <= 299:
        return _classify_success(marker_found, content_complete)
    if status in (404, 410):
        return Verdict(outcome=Outcome.BROKEN, reason=Reason.GONE)
    if status in (401, 403, 407):
        return Verdict(outcome=Outcome.UNCERTAIN, reason=Reason.AUTH)
    if 500 <= status <= 599:
        return Verdict(outcome=Outcome.UNCERTAIN, reason=Reason.SERVER_ERROR)
    return Verdict(outcome=Outcome.UNCERTAIN, reason=Reason.UNEXPECTED_STATUS)


def _classify_success(marker_found: bool | None, content_complete: bool) -> Verdict:
    if marker_found is None or marker_found:
        return Verdict(outcome=Outcome.REACHABLE)
    if not content_complete:
        return Verdict(outcome=Outcome.UNCERTAIN, reason=Reason.INCOMPLETE_CONTENT)
    return Verdict(outcome=Outcome.CONTENT_CHANGED, reason=Reason.MARKER_MISSING)
