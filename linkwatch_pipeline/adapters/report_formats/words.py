"""Words of the report: for outcomes, suspicions, places and owners."""

from __future__ import annotations

from linkwatch_pipeline.domain.findings import Suspicion
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome

NOBODY = "nobody"
OUTCOME_WORDS = {
    Outcome.REACHABLE: "reachable",
    Outcome.BROKEN: "broken",
    Outcome.UNCERTAIN: "uncertain",
    Outcome.THROTTLED: "throttled",
    Outcome.CONTENT_CHANGED: "text missing",
}
SUSPICION_WORDS = {
    Suspicion.FRONT_PAGE: "a deep link ends at a front page",
    Suspicion.ERROR_PAGE: "the address it ends at names an error page",
    Suspicion.SAME_PAGE: "other links of the host gave the very same page",
    Suspicion.OTHER_SITE: "it ends on another site, where it once ended on its own",
    Suspicion.PARKING_HOST: "it ends at a service that parks domains",
    Suspicion.PAGE_HINT: "the page itself says so",
}


def place_of(link: Link | None) -> str | None:
    """Where a link stands: the first place, and how many more there are."""
    if link is None or not link.places:
        return None
    more = f" (+{len(link.places) - 1})" if len(link.places) > 1 else ""
    return f"{link.places[0].file}:{link.places[0].line}{more}"


def owner_word(link: Link | None) -> str | None:
    """The owner as people read it; None if the link is not known."""
    if link is None:
        return None
    return f"{link.owner or NOBODY} (retired)" if link.retired_at is not None else link.owner or NOBODY


def outcome_word(outcome: Outcome | None) -> str:
    return OUTCOME_WORDS[outcome] if outcome is not None else "nobody looked"
