"""Answers `ports.Reports` from the warehouse's views. Each section is one query, in the `.sql` file of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty
from linkwatch_pipeline.domain.findings import (
    SAME_PAGE_FROM,
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
    Suspicion,
)
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.timestamps import WEEK, format_seconds, parse_week, week_key

if TYPE_CHECKING:
    import duckdb

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Services to which a domain without a site of its own is pointed, or that offer it for sale.
PARKING_SERVICES = (
    "above.com", "afternic.com", "bodis.com", "dan.com", "domainmarket.com", "hugedomains.com", "parkingcrew.net",
    "sav.com", "sedo.com", "sedoparking.com", "undeveloped.com", "uniregistry.com", "voodoo.com",
)  # fmt: skip
WEEKS_BETWEEN_LOOKS = 8  # an older look says nothing of what is stable now
_ERROR_PATH = r"(^|[/_.-])(404|410|error|errors|notfound|not[-_]found|page[-_]not[-_]found|missing)([/_.-]|$)"


class Views(Protocol):
    """Where the weeks come from (`adapters.warehouse.views`)."""

    def weeks(self) -> Sequence[datetime]: ...

    def opened(
        self, *, since: datetime | None = None, through: datetime | None = None
    ) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...


class DuckDBReports:
    """Reports over the warehouse's views. Needs DuckDB (the extra `reports`) when it is asked."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def weeks(self) -> Sequence[datetime]:
        """The weeks that have a file, in order."""
        return self._views.weeks()

    def outcomes_by_week(self, *, through: datetime) -> Mapping[datetime, Mapping[Outcome, int]]:
        """How many links ended each week with which outcome; only weeks with looks of a run."""
        counted: dict[datetime, dict[Outcome, int]] = {}
        for week, outcome, links in self._ask("outcomes_by_week", None, through, until=_end_of(through)):
            counted.setdefault(parse_week(week), {})[Outcome(outcome)] = links
        return counted

    def groups(self, week: datetime, *, by: Grouping, most: int) -> Ranked[GroupCount]:
        """The week's links by owner, host or file, those with the most broken ones first, then the largest."""
        return _ranked(self._ask("groups", week, week, **_within(week), by=by.value, most=most), _group)

    def link_ends(self, week: datetime) -> Sequence[LinkEnd]:
        """Each link of a week by its last look, in id order."""
        return [_end(*row) for row in self._ask("link_ends", week, week, **_within(week))]

    def worst_hosts(self, week: datetime, *, most: int) -> Ranked[HostTrouble]:
        """The hosts with the most links broken, uncertain or throttled, the worst first."""
        return _ranked(self._ask("worst_hosts", week, week, **_within(week), most=most), _host_trouble)

    def changes(self, week: datetime, *, kind: ChangeKind, most: int) -> Ranked[LinkChange]:
        """The links that broke, recovered or are still broken at the end of a week, the longest since first."""
        bounds = {"monday": format_seconds(week), "next_monday": format_seconds(week + WEEK)}
        rows = self._ask("changes", week, week, **_within(week), **bounds, kind=kind.value, most=most)
        return _ranked(rows, _change)

    def repeated_uncertainty(self, week: datetime, *, at_least: int, most: int) -> Ranked[RepeatedUncertainty]:
        """The links uncertain in this and the weeks before it, `at_least` in a row, the longest first."""
        rows = self._ask("repeated_uncertainty", None, week, **_within(week), at_least=at_least, most=most)
        return _ranked(rows, _repeated)

    def content_changed(self, week: datetime, *, most: int) -> Ranked[ChangedContent]:
        """The links whose page lacked the expected text, in id order."""
        return _ranked(self._ask("content_changed", week, week, **_within(week), most=most), _changed)

    def moved_for_good(self, week: datetime, *, most: int) -> Ranked[MovedLink]:
        """The links whose two latest looks were led by 301 and 308 alone to the same address, in id order."""
        first = week - WEEKS_BETWEEN_LOOKS * WEEK
        return _ranked(self._ask("moved_for_good", first, week, **_within(week), most=most), _moved)

    def suspected_pages(self, week: datetime, *, most: int) -> Ranked[SuspectedPage]:
        """The reachable links whose page may be another than was meant, the most suspected first."""
        signs = {"parking": list(PARKING_SERVICES), "error_path": _ERROR_PATH, "same_from": SAME_PAGE_FROM}
        return _ranked(self._ask("suspected_pages", None, week, **_within(week), **signs, most=most), _suspected)

    def ending_certificates(self, week: datetime, *, within: timedelta, most: int) -> Ranked[EndingCertificate]:
        """The hosts whose certificate ends `within` that time of the look, the soonest first."""
        rows = self._ask("ending_certificates", week, week, **_within(week), days=within.days, most=most)
        return _ranked(rows, _certificate)

    def slowest_hosts(self, week: datetime, *, most: int) -> Ranked[SlowHost]:
        """The hosts by the median time of their answers, the slowest first."""
        return _ranked(self._ask("slowest_hosts", week, week, **_within(week), most=most), _slow)

    def availability(self, week: datetime, *, weeks: int, most: int) -> Ranked[LinkAvailability]:
        """The links of this week that were broken in any of the last `weeks` weeks, the least available first."""
        first = week - (weeks - 1) * WEEK
        rows = self._ask("availability", first, week, **_within(week), first=week_key(first), most=most)
        return _ranked(rows, _availability)

    def _ask(self, query: str, since: datetime | None, through: datetime, /, **values: object) -> list[tuple[Any, ...]]:
        """The rows of a query over some weeks. Raises MissingExtra, StoreUnusable."""
        with self._views.opened(since=since, through=through) as connection:
            return connection.execute(_query(query), values).fetchall()


@cache
def _query(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def _within(week: datetime) -> dict[str, str]:
    """Bounds of the run ids of a week: an id begins with its Monday's date."""
    return {"since": week_key(week), "until": _end_of(week)}


def _end_of(week: datetime) -> str:
    return week_key(week + WEEK)


def _ranked(rows: list[tuple[Any, ...]], make: Any) -> Ranked[Any]:
    """Rows that end with how many there are in all."""
    return Ranked(rows=tuple(make(*row[:-1]) for row in rows), total=rows[0][-1] if rows else 0)


def _group(name: str | None, links: int, outcomes: Mapping[str, int]) -> GroupCount:
    return GroupCount(name=name, links=links, outcomes={o: outcomes[o.value] for o in Outcome if o.value in outcomes})


def _end(link_id: str, url: str, outcome: str, reason: str | None, latency_ms: int | None) -> LinkEnd:
    return LinkEnd(
        link_id=link_id,
        url=url,
        outcome=Outcome(outcome),
        reason=Reason(reason) if reason is not None else None,
        latency_ms=latency_ms,
    )


def _host_trouble(
    host: str, links: int, broken: int, uncertain: int, throttled: int, reasons: Mapping[str, int] | None
) -> HostTrouble:
    named = sorted((reasons or {}).items(), key=lambda item: (-item[1], item[0]))
    return HostTrouble(
        host=host,
        links=links,
        broken=broken,
        uncertain=uncertain,
        throttled=throttled,
        reasons={Reason(reason): count for reason, count in named},
    )


def _change(
    link_id: str, url: str, since: int, last_good: int | None, status: int | None, seen: str | None
) -> LinkChange:
    return LinkChange(
        link_id=link_id,
        url=url,
        since=_moment(since),
        last_good=_moment(last_good) if last_good is not None else None,
        status=status,
        seen=Outcome(seen) if seen is not None else None,
    )


def _repeated(
    link_id: str, url: str, weeks: int, since: int, reason: str | None, reasons: list[str]
) -> RepeatedUncertainty:
    return RepeatedUncertainty(
        link_id=link_id,
        url=url,
        weeks=weeks,
        since=_moment(since),
        reason=Reason(reason) if reason is not None else None,
        reasons=tuple(Reason(each) for each in reasons),
    )


def _changed(link_id: str, url: str, observed_at: int, status: int | None, final_url: str | None) -> ChangedContent:
    return ChangedContent(
        link_id=link_id, url=url, observed_at=_moment(observed_at), status=status, final_url=final_url
    )


def _moved(link_id: str, url: str, target: str, hops: int, since: int) -> MovedLink:
    return MovedLink(link_id=link_id, url=url, target=target, hops=hops, since=_moment(since))


def _suspected(
    link_id: str,
    url: str,
    final_url: str | None,
    suspicions: list[str],
    hints: list[str],
    others: int,
    observed_at: int,
) -> SuspectedPage:
    return SuspectedPage(
        link_id=link_id,
        url=url,
        final_url=final_url,
        suspicions=tuple(Suspicion(each) for each in suspicions),
        hints=tuple(hints),
        others=others,
        observed_at=_moment(observed_at),
    )


def _certificate(host: str, not_after: int, days_left: int, links: int, example: str) -> EndingCertificate:
    return EndingCertificate(host=host, not_after=_moment(not_after), days_left=days_left, links=links, example=example)


def _slow(host: str, answers: int, median_ms: int, p95_ms: int, slowest_ms: int) -> SlowHost:
    return SlowHost(host=host, answers=answers, median_ms=median_ms, p95_ms=p95_ms, slowest_ms=slowest_ms)


def _availability(link_id: str, url: str, reachable: int, broken: int, unsure: int, no_data: int) -> LinkAvailability:
    return LinkAvailability(
        link_id=link_id, url=url, reachable=reachable, broken=broken, unsure=unsure, no_data=no_data
    )


def _moment(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND
