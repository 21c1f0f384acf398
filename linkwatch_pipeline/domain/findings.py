"""What a report lists beside its counts: changes, moves, doubts, certificates, slowness and availability.

Each row is what the warehouse says of one link, host, owner or file in one week (docs/explanation/counting-rules.md).
Who owns a link and where it stands is looked up in the registry of today and is not part of these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import sqrt

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason

CERTIFICATE_ENDS_WITHIN = timedelta(days=21)
AVAILABILITY_WEEKS = 52  # how far back the availability of a link looks
SAME_PAGE_FROM = 3  # links of a host with the very same bytes from which they look like one error page
_Z_95 = 1.959963984540054  # the normal quantile of a two-sided interval of 95 %


class Grouping(StrEnum):
    """By what the links of a week are counted. A link that stands in several files counts in each."""

    OWNER = "owner"
    HOST = "host"
    FILE = "file"


class ChangeKind(StrEnum):
    """How a link stands at the end of a week, beside its beginning."""

    NEWLY_BROKEN = "newly_broken"  # the week's last transition led to `broken`
    RECOVERED = "recovered"  # the week's last transition led back to `reachable`
    STILL_BROKEN = "still_broken"  # broken before the week, and no transition in it


class Suspicion(StrEnum):
    """Why a page that answers may not be the page that was meant: advice to a person, never a state."""

    FRONT_PAGE = "front_page"  # a deep link ended at a front page
    ERROR_PAGE = "error_page"  # it ended at an address that names an error page
    SAME_PAGE = "same_page"  # several links of its host gave the very same bytes
    OTHER_SITE = "other_site"  # it ends on another site, and was found at its own address before
    PARKING_HOST = "parking_host"  # it ended at a service that parks domains
    PAGE_HINT = "page_hint"  # the page itself said so


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCount:
    """The links of one owner, host or file in a week, each by its last look. `name` None: links without an owner."""

    name: str | None
    links: int
    outcomes: Mapping[Outcome, int]

    def count(self, outcome: Outcome) -> int:
        return self.outcomes.get(outcome, 0)

    @property
    def unsure(self) -> int:
        """Links without a verdict in this week."""
        return self.count(Outcome.UNCERTAIN) + self.count(Outcome.THROTTLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """How a link's last look of a week ended."""

    link_id: str
    url: str
    outcome: Outcome
    reason: Reason | None
    latency_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkChange:
    """A link that broke, recovered, or stays broken; `since` is when its present state was first observed.

    `last_good` is when the state before it began (None: it was never known to be good). `status` is what the deciding
    look saw, `seen` how the link's last look of this week ended, None if nobody looked.
    """

    link_id: str
    url: str
    since: datetime
    last_good: datetime | None
    status: int | None
    seen: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLink:
    """A page that moved for good: in its two latest looks every hop was 301 or 308 and both ended at `target`.

    `since` is the earlier of the two looks; `hops` counts the redirects of the latest.
    """

    link_id: str
    url: str
    target: str
    hops: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedPage:
    """A page that answers but that a person should look at. `others` counts the links with the very same bytes."""

    link_id: str
    url: str
    final_url: str | None
    suspicions: tuple[Suspicion, ...]
    hints: tuple[str, ...]
    others: int
    observed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingCertificate:
    """A host whose certificate ends soon: `days_left` whole days from the look, negative if it had ended."""

    host: str
    not_after: datetime
    days_left: int
    links: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowHost:
    """How long a host's answers took, redirects included; only looks that were answered count."""

    host: str
    answers: int
    median_ms: int
    p95_ms: int
    slowest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAvailability:
    """In how many weeks a link was found, of those with a verdict, up to and with the week of the report.

    `reachable` + `broken` weeks have a verdict. `unsure` weeks (uncertain, throttled, text missing) and `no_data` weeks
    since its first look are in neither: uncertain is not down, and a gap is not up.
    """

    link_id: str
    url: str
    reachable: int
    broken: int
    unsure: int
    no_data: int

    @property
    def share(self) -> float | None:
        """The part of weeks with a verdict in which it was found, 0 to 1; None is no data."""
        known = self.reachable + self.broken
        return self.reachable / known if known else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the share lies with 95 % confidence (Wilson); None is no data."""
        return wilson_interval(self.reachable, self.reachable + self.broken)


def wilson_interval(found: int, tried: int) -> tuple[float, float] | None:
    """The score interval of a share at 95 %, 0 to 1; None when nothing was tried.

    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209; unlike the normal one it is right for few and for extreme.
    """
    if tried <= 0:
        return None
    share, z2 = found / tried, _Z_95**2
    middle = (share + z2 / (2 * tried)) / (1 + z2 / tried)
    reach = _Z_95 * sqrt(share * (1 - share) / tried + z2 / (4 * tried**2)) / (1 + z2 / tried)
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))  # rounding stays outside
