"""The coverage report of a week as a value: what `use_cases.report` makes, and every format shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty, WeekCount
from linkwatch_pipeline.domain.findings import (
    ChangeKind,
    EndingCertificate,
    GroupCount,
    LinkAvailability,
    LinkChange,
    MovedLink,
    SlowHost,
    SuspectedPage,
)
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.timestamps import week_key

MOST_WEEKS_NAMED = 5

# The lists whose rows are links.
LISTS_OF_LINKS = (
    *(kind.value for kind in ChangeKind),
    "repeated_uncertainty",
    "content_changed",
    "moved_for_good",
    "suspected_pages",
    "availability",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekExport:
    """A week's export: how many observations its file holds (0: there is none), and whether it was written just now."""

    week: datetime
    rows: int
    written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How much there is to do. Only `to_mend` is work for the handbook's people, and it can become nought.

    `unsure` (links of this week without a verdict; None is no data) and `advice` are told apart from it, never added.
    """

    broken: int
    text_missing: int
    moved: int
    unsure: int | None
    advice: int

    @property
    def to_mend(self) -> int:
        return self.broken + self.text_missing + self.moved


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageReport:
    """A week and all weeks before it, the newest first; gaps are there, without data.

    `links` has the links that the lists name, as the store knows them now: owner, places, expected text. `problems` are
    sentences about earlier weeks whose files are lost; those weeks have no outcomes here. Each list has its first rows
    and how many there are (`Ranked`). `missed_since` are the weeks after this one that nobody ran, until somebody did,
    the newest first. `suspected_pages` is advice to a person and no state.
    """

    exported: WeekExport
    weeks: tuple[WeekCount, ...]
    by_owner: Ranked[GroupCount]
    by_host: Ranked[GroupCount]
    by_file: Ranked[GroupCount]
    worst_hosts: Ranked[HostTrouble]
    newly_broken: Ranked[LinkChange]
    recovered: Ranked[LinkChange]
    still_broken: Ranked[LinkChange]
    repeated_uncertainty: Ranked[RepeatedUncertainty]
    content_changed: Ranked[ChangedContent]
    moved_for_good: Ranked[MovedLink]
    suspected_pages: Ranked[SuspectedPage]
    ending_certificates: Ranked[EndingCertificate]
    slowest_hosts: Ranked[SlowHost]
    availability: Ranked[LinkAvailability]
    links: Mapping[str, Link]
    problems: tuple[str, ...] = ()
    missed_since: tuple[datetime, ...] = ()

    @property
    def this_week(self) -> WeekCount:
        return self.weeks[0]

    @property
    def score(self) -> Score:
        unsure = [self.this_week.count(outcome) for outcome in (Outcome.UNCERTAIN, Outcome.THROTTLED)]
        return Score(
            broken=self.newly_broken.total + self.still_broken.total,
            text_missing=self.content_changed.total,
            moved=self.moved_for_good.total,
            unsure=sum(count or 0 for count in unsure) if self.this_week.links is not None else None,
            advice=self.suspected_pages.total + self.ending_certificates.total,
        )

    @property
    def missed_in_words(self) -> str | None:
        """A sentence about the weeks since this one that nobody ran; None if there are none."""
        if not self.missed_since:
            return None
        named = ", ".join(week_key(week) for week in self.missed_since[:MOST_WEEKS_NAMED])
        more = len(self.missed_since) - MOST_WEEKS_NAMED
        weeks = f"{len(self.missed_since)} weeks" if len(self.missed_since) > 1 else "week"
        return f"Nobody ran the {weeks} since: {named}{f' and {more} more' if more > 0 else ''}."

    def owner_of(self, link_id: str) -> str | None:
        """Whose a link is now; None: nobody's, or not known."""
        link = self.links.get(link_id)
        return link.owner if link is not None else None

    def of_owner(self, owner: str | None) -> CoverageReport:
        """The same report with the links of one owner alone (None: those of nobody).

        The lists have to be whole: what was cut off is missing here too. Weeks are everybody's; hosts are left out.
        """
        own: dict[str, Any] = {name: self._own(getattr(self, name), owner) for name in LISTS_OF_LINKS}
        groups = tuple(group for group in self.by_owner.rows if group.name == owner)
        hosts: Ranked[Any] = Ranked()
        return replace(
            self,
            by_owner=Ranked(rows=groups, total=len(groups)),
            by_host=hosts,
            worst_hosts=hosts,
            slowest_hosts=hosts,
            ending_certificates=hosts,
            **own,
        )

    def _own(self, found: Ranked[Any], owner: str | None) -> Ranked[Any]:
        rows = tuple(row for row in found.rows if self.owner_of(row.link_id) == owner)
        return Ranked(rows=rows, total=len(rows))
