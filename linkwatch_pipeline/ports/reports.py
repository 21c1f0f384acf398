"""Questions that the warehouse's weeks answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty
from linkwatch_pipeline.domain.findings import (
    ChangeKind,
    EndingCertificate,
    GroupCount,
    Grouping,
    LinkAvailability,
    LinkChange,
    LinkEnd,
    MovedLink,
    SlowHost,
    SuspectedPage,
)
from linkwatch_pipeline.domain.outcomes import Outcome


class Reports(Protocol):
    """What the warehouse's weeks say. A link counts once a week, checks by hand never (`domain.coverage`).

    A week without a file, or without looks of a run, is left out or answered with nothing. `most` bounds the rows of a
    list; its total says how many there are. Each may raise StoreUnusable (a damaged file) and MissingExtra.
    """

    def weeks(self) -> Sequence[datetime]:
        """The weeks that have a file, in order."""
        ...

    def outcomes_by_week(self, *, through: datetime) -> Mapping[datetime, Mapping[Outcome, int]]:
        """How many links ended with which outcome, each week up to `through`; what did not occur is left out."""
        ...

    def groups(self, week: datetime, *, by: Grouping, most: int) -> Ranked[GroupCount]:
        """The week's links by owner, host or file, those with the most broken ones first, then the largest."""
        ...

    def link_ends(self, week: datetime) -> Sequence[LinkEnd]:
        """Each link of a week by its last look, in id order."""
        ...

    def worst_hosts(self, week: datetime, *, most: int) -> Ranked[HostTrouble]:
        """The hosts with the most links broken, uncertain or throttled, the worst first."""
        ...

    def changes(self, week: datetime, *, kind: ChangeKind, most: int) -> Ranked[LinkChange]:
        """The links that broke, recovered or are still broken at the end of a week, the longest since first.

        Links retired or given another URL since are left out of those still broken.
        """
        ...

    def repeated_uncertainty(self, week: datetime, *, at_least: int, most: int) -> Ranked[RepeatedUncertainty]:
        """The links uncertain in this and the weeks before it, `at_least` in a row, the longest first."""
        ...

    def content_changed(self, week: datetime, *, most: int) -> Ranked[ChangedContent]:
        """The links whose page lacked the expected text, in id order."""
        ...

    def moved_for_good(self, week: datetime, *, most: int) -> Ranked[MovedLink]:
        """The links whose two latest looks were led by 301 and 308 alone to the same address, in id order."""
        ...

    def suspected_pages(self, week: datetime, *, most: int) -> Ranked[SuspectedPage]:
        """The reachable links whose page may be another than was meant, the most suspected first."""
        ...

    def ending_certificates(self, week: datetime, *, within: timedelta, most: int) -> Ranked[EndingCertificate]:
        """The hosts whose certificate ends `within` that time of the look, the soonest first."""
        ...

    def slowest_hosts(self, week: datetime, *, most: int) -> Ranked[SlowHost]:
        """The hosts by the median time of their answers, the slowest first."""
        ...

    def availability(self, week: datetime, *, weeks: int, most: int) -> Ranked[LinkAvailability]:
        """The links of this week that were broken in any of the last `weeks` weeks, the least available first."""
        ...
