"""Rows of the store as tables and numbers that people read in the Dagster UI. Numbers are plotted there over weeks."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nsmallest
from itertools import islice

import dagster as dg

from linkwatch_pipeline.defs.pictures import page_links
from linkwatch_pipeline.domain.coverage import completeness, percent
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import COUNTED, HostChain, Run, RunCounts
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.use_cases.review_week import HostPace, RunSummary

LONGEST_TABLE = 1000  # rows are stored in Dagster's event log

Cell = str | int | float | bool | None
Columns = Sequence[dg.TableColumn]

_LINK = dg.TableColumn("link", description="the link's id")
_OWNER = dg.TableColumn("owner", description="the team that is told")
_URL = dg.TableColumn("url")
_STATUS = dg.TableColumn("status", "int", "HTTP status, empty without a usable answer")
_ENDED = dg.TableColumn("ended", description="how the jobs ended: their outcome, or why there is none")
_TRANSITION = dg.TableColumn("transition", description="link:version, the identity of a change and of its notice")

LINK_COLUMNS: Columns = (
    _LINK,
    dg.TableColumn("state", description="what is known for certain: unknown, reachable or broken"),
    dg.TableColumn("since", description="when that began (UTC)"),
    _OWNER,
    _URL,
)
PAGE_COLUMNS: Columns = (
    _LINK,
    dg.TableColumn("outcome", description="what the last look of the week meant"),
    dg.TableColumn("reason", description="why it is not reachable"),
    _STATUS,
    dg.TableColumn("at", description="when it was observed (UTC)"),
    _URL,
)
CHANGE_COLUMNS: Columns = (
    _TRANSITION,
    dg.TableColumn("change", description="old and new state"),
    _STATUS,
    dg.TableColumn("at", description="when it was observed (UTC)"),
    _OWNER,
    _URL,
)
NOTICE_COLUMNS: Columns = (
    _TRANSITION,
    dg.TableColumn("change", description="what the mail says: old and new state"),
    _OWNER,
    dg.TableColumn("delivery", description="how far the telling has come; sent means accepted by the provider"),
    dg.TableColumn("attempts", "int"),
    dg.TableColumn("sent", description="UTC"),
    dg.TableColumn("next_attempt", description="UTC, empty if at once or never"),
    dg.TableColumn("released", description="when it may first be sent (UTC), empty until its run is released"),
    dg.TableColumn("mail", description="which mail told it: a mail of its own, or a digest"),
    dg.TableColumn("last_error"),
)
HOST_COLUMNS: Columns = (
    dg.TableColumn("host"),
    dg.TableColumn("jobs", "int"),
    dg.TableColumn("left", "int", "jobs that have not ended yet"),
    _ENDED,
    dg.TableColumn("first_request", description="UTC"),
    dg.TableColumn("last_answer", description="UTC"),
    dg.TableColumn("next_due", description="when the next job may start (UTC), empty when none is left"),
    dg.TableColumn("run", description="the weekly run, or the retry run that looked again at throttled links"),
)
PACE_COLUMNS: Columns = (
    dg.TableColumn("host"),
    dg.TableColumn("observations", "int"),
    dg.TableColumn("mean_ms", "int", "mean network time of an observation, redirects included"),
    dg.TableColumn("slowest_ms", "int"),
)
RUN_COLUMNS: Columns = (
    dg.TableColumn("run", description="the weekly run, and the runs that looked again at throttled links"),
    dg.TableColumn("state"),
    dg.TableColumn("jobs", "int"),
    _ENDED,
    dg.TableColumn("started", description="UTC"),
    dg.TableColumn("closed", description="UTC"),
)
OUTCOME_COLUMNS: Columns = (_ENDED, dg.TableColumn("jobs", "int"), dg.TableColumn("share", "float", "percent"))


def table(columns: Columns, rows: Iterable[Sequence[Cell]]) -> dg.TableMetadataValue:
    """A table, cut after 1,000 rows."""
    records = [
        dg.TableRecord({column.name: _plain(cell) for column, cell in zip(columns, row, strict=True)})
        for row in islice(rows, LONGEST_TABLE)
    ]
    return dg.MetadataValue.table(records, column_schema(columns))


def column_schema(columns: Columns) -> dg.TableSchema:
    """The columns alone, for an asset's own page."""
    return dg.TableSchema(columns=list(columns))


def percentage(value: float | None) -> dg.MetadataValue:
    """A share as a number that can be plotted, cut to tenths of a percent; `no data` in words."""
    text = percent(value)
    return dg.MetadataValue.text(text) if value is None else dg.MetadataValue.float(float(text.removesuffix(" %")))


def outcome_table(counts: RunCounts) -> dg.TableMetadataValue:
    """How the jobs of a run ended."""
    return table(
        OUTCOME_COLUMNS,
        [(end, jobs, round(100 * jobs / counts.expected, 1)) for end, jobs in counts.by_end.items()],
    )


def run_numbers(run: Run, counts: RunCounts) -> dict[str, dg.MetadataValue]:
    """A run's arithmetic as metadata."""
    numbers: dict[str, dg.MetadataValue] = {
        "run_id": dg.MetadataValue.text(run.run_id),
        "state": dg.MetadataValue.text(run.state.value),
        "jobs_expected": dg.MetadataValue.int(counts.expected),
        "jobs_ended": dg.MetadataValue.int(counts.terminal),
        "completeness_percent": percentage(completeness(counts)),
        **count_each_end(counts.by_end),
        "intended_at": dg.MetadataValue.timestamp(run.intended_at),
        "started_at": dg.MetadataValue.timestamp(run.started_at),
        "deadline_at": dg.MetadataValue.timestamp(run.deadline_at),
    }
    if run.closed_at is not None:
        numbers["closed_at"] = dg.MetadataValue.timestamp(run.closed_at)
        numbers["minutes_taken"] = dg.MetadataValue.float(_minutes(run.closed_at - run.started_at))
        numbers["minutes_late"] = dg.MetadataValue.float(max(_minutes(run.closed_at - run.deadline_at), 0.0))
    return numbers


def count_each_end(by_end: Mapping[str, int]) -> dict[str, dg.MetadataValue]:
    """A number for each way to end, whether it occurred or not, so that its plot has no gaps."""
    return {f"jobs_{end}": dg.MetadataValue.int(by_end.get(end, 0)) for end in COUNTED}


def run_table(runs: Iterable[RunSummary]) -> dg.TableMetadataValue:
    """One row per run of a week."""
    return table(
        RUN_COLUMNS,
        [
            (
                summary.run.run_id,
                summary.run.state.value,
                summary.counts.expected,
                _ends(summary.counts.by_end),
                _in_week(summary.run.started_at),
                _in_week(summary.run.closed_at),
            )
            for summary in runs
        ],
    )


def host_table(chains: Iterable[HostChain]) -> dg.TableMetadataValue:
    """One row per host: those with work left first, then those with the most jobs."""
    first = nsmallest(LONGEST_TABLE, chains, key=lambda chain: (-chain.remaining, -chain.total, chain.host))
    return table(
        HOST_COLUMNS,
        (
            (
                chain.host,
                chain.total,
                chain.remaining,
                _ends(chain.counts),
                _in_week(chain.first_observed_at),
                _in_week(chain.last_observed_at),
                _in_week(chain.head_ready_at if chain.remaining else None),
                chain.run_id,
            )
            for chain in first
        ),
    )


def pace_table(paces: Iterable[HostPace]) -> dg.TableMetadataValue:
    """How fast hosts answered."""
    return table(PACE_COLUMNS, [(p.host, p.observations, round(p.mean_ms), p.slowest_ms) for p in paces])


def link_table(links: Iterable[Link]) -> dg.TableMetadataValue:
    """One row per link."""
    return table(LINK_COLUMNS, [(k.id, k.state.value, _moment(k.state_since), k.owner or "", k.url) for k in links])


def page_table(troubled: Iterable[Observation]) -> dg.TableMetadataValue:
    """One row per page that was not found reachable."""
    return table(
        PAGE_COLUMNS,
        [(o.link_id, o.outcome, o.reason or "", o.status, _moment(o.observed_at), o.url) for o in troubled],
    )


def page_list(troubled: Iterable[Observation]) -> dg.MarkdownMetadataValue:
    """The same pages to click on."""
    return page_links((o.link_id, o.url, f"{o.outcome.value} ({o.reason or 'no reason'})") for o in troubled)


def change_table(changes: Iterable[tuple[Transition, Notice | None]]) -> dg.TableMetadataValue:
    """One row per transition, with what its notice says."""
    return table(
        CHANGE_COLUMNS,
        [
            (
                change.id,
                _change(change),
                notice.observed_status if notice is not None else None,
                _moment(change.at),
                (notice.owner if notice is not None else None) or "",
                notice.url if notice is not None else "",
            )
            for change, notice in changes
        ],
    )


def change_list(changes: Iterable[tuple[Transition, Notice | None]]) -> dg.MarkdownMetadataValue:
    """The pages that changed, to click on."""
    return page_links((change.link_id, notice.url, _change(change)) for change, notice in changes if notice is not None)


def notice_table(notices: Iterable[Notice]) -> dg.TableMetadataValue:
    """One row per notice."""
    return table(
        NOTICE_COLUMNS,
        [
            (
                n.transition_id,
                _change(n),
                n.owner or "",
                n.status.value,
                n.attempts,
                _moment(n.sent_at),
                _moment(n.next_attempt_at),
                _moment(n.release_at),
                _mail(n),
                n.last_error or "",
            )
            for n in notices
        ],
    )


def _mail(notice: Notice) -> str:
    if notice.mail_id is None:
        return ""
    return "its own" if notice.mail_id == notice.transition_id else notice.mail_id


def _change(told: Transition | Notice) -> str:
    return f"{told.from_state.value} to {told.to_state.value}"


def _ends(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{end} {counts[end]}" for end in COUNTED if counts.get(end))


def _minutes(duration: timedelta) -> float:
    return round(duration / timedelta(minutes=1), 2)


def _moment(value: datetime | None) -> str:
    """Without the zone, which the column names: cells are narrow."""
    return f"{value:%Y-%m-%d %H:%M}" if value is not None else ""


def _in_week(value: datetime | None) -> str:
    """`Mon 09:00:03`, where the week is known."""
    return f"{value:%a %H:%M:%S}" if value is not None else ""


def _plain(cell: Cell) -> Cell:
    return str(cell) if isinstance(cell, str) else cell  # Dagster stores no enumerations
