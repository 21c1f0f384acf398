"""A weekly run: its jobs, its chain of jobs per host, its counters and its end (ARCHITECTURE 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.timestamps import WEEK, format_seconds, parse_utc, require_utc

DEADLINE_AFTER = timedelta(minutes=30)  # later than this after the intended time is late
OPEN_FOR = timedelta(hours=6)  # what is still pending this long after the start expires
RETRY_WINDOW = timedelta(hours=24)  # no retry run starts later than this after the intended time
MAX_RETRY_RUNS = 3
THROTTLED_IN_A_ROW = 3  # answers of 429 in a row from one host that expire its remaining jobs of the run
DEATHS_UNTIL_ABANDONED = 3
DEFERRALS_UNTIL_UNCERTAIN = 3  # of a job whose redirect leads to a busy host
RESEND_AFTER = timedelta(seconds=240)
DEFER_SLACK = timedelta(seconds=2)
SEND_NEXT_AGAIN_AFTER = timedelta(seconds=60)
_RETRY_MARK = "~retry-"


class RunState(StrEnum):
    """`dispatching` until every job exists, `open` until every job is terminal or time is up, then `closed`.

    `missed` records a week that nobody ran: it has no jobs and never will, unless it was recorded before the week was
    over (`is_missed_too_early`).
    """

    DISPATCHING = "dispatching"
    OPEN = "open"
    CLOSED = "closed"
    MISSED = "missed"

    @property
    def is_over(self) -> bool:
        """Whether nothing will be observed under this run any more."""
        return self in (RunState.CLOSED, RunState.MISSED)


class RulingKind(StrEnum):
    """What was decided about the notices of a run."""

    RELEASED = "released"
    HELD = "held"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The decision about a run's notices: `by` a person, or None if linkwatch ruled; `why` a sentence or empty."""

    kind: RulingKind
    at: datetime
    by: str | None = None
    why: str = ""


class JobStatus(StrEnum):
    """`done` has an observation; the other terminal ones say why there is none. A terminal job never reopens."""

    PENDING = "pending"
    DONE = "done"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ABANDONED = "abandoned"

    @property
    def is_terminal(self) -> bool:
        return self is not JobStatus.PENDING


# What a chain counts: an outcome for a job that is done, else how the job ended.
COUNTED = (
    *(outcome.value for outcome in Outcome),
    JobStatus.CANCELLED.value,
    JobStatus.EXPIRED.value,
    JobStatus.ABANDONED.value,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckJob:
    """The message: exactly what a queue carries for one link in one run (SPEC 7.3).

    A check by hand that goes over the queue has an empty `run_id`: no run counts it.
    """

    job_id: str
    run_id: str
    link_id: str
    sequence: int
    config_version: int

    @property
    def is_by_hand(self) -> bool:
        return not self.run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job as the store knows it; the worker trusts this, not the message. `next` is the next link on its host."""

    run_id: str
    link_id: str
    host: str
    sequence: int
    config_version: int
    next: str | None = None
    retry_of: str | None = None
    status: JobStatus = JobStatus.PENDING
    deferrals: int = 0
    deaths: int = 0
    content_digest: str | None = None
    outcome: Outcome | None = None
    reason: Reason | None = None

    @property
    def job_id(self) -> str:
        return job_id(self.run_id, self.link_id)

    @property
    def message(self) -> CheckJob:
        return CheckJob(
            job_id=self.job_id,
            run_id=self.run_id,
            link_id=self.link_id,
            sequence=self.sequence,
            config_version=self.config_version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChain:
    """One host's jobs in one run: the cursor (`head`, a link id or None when done) and the run's counters for the host.

    `streak` counts throttled answers in a row; `resends` how often the tick sent this head again;
    `first_observed_at` and `last_observed_at` bound the host's active interval; `planned_sent_at` is when its first
    head was claimed to be sent at its planned start, None in process, where starts are not planned.
    """

    run_id: str
    host: str
    head: str | None
    head_ready_at: datetime
    remaining: int
    total: int
    counts: Mapping[str, int] = field(default_factory=dict)
    resends: int = 0
    streak: int = 0
    first_observed_at: datetime | None = None
    last_observed_at: datetime | None = None
    planned_sent_at: datetime | None = None

    @property
    def awaits_start(self) -> bool:
        """Whether nothing of it was done, nor its first head sent at a planned time or again."""
        return bool(self.head) and self.remaining == self.total and not self.resends and self.planned_sent_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run's summary row. `cursor` is the last host dispatched; `totals` is written once, when the run closes.

    `ruling` is what was decided about its notices, None before that.
    """

    run_id: str
    intended_at: datetime
    started_at: datetime
    state: RunState = RunState.DISPATCHING
    expected: int | None = None
    dispatched: int = 0
    dispatched_at: datetime | None = None
    closed_at: datetime | None = None
    cursor: str | None = None
    retry_of: str | None = None
    totals: RunCounts | None = None
    ruling: Ruling | None = None

    def __post_init__(self) -> None:
        require_utc("intended_at", self.intended_at)
        require_utc("started_at", self.started_at)

    @property
    def deadline_at(self) -> datetime:
        """A run that is not closed by then is late; a retry run is measured from its own start."""
        return (self.intended_at if self.retry_of is None else self.started_at) + DEADLINE_AFTER

    @property
    def release_due_at(self) -> datetime:
        """When its notices are released even if it goes on: at its deadline, or half an hour after a start past that.

        A run that was begun late has to see enough before anybody can tell whether it is suspect.
        """
        return self.deadline_at if self.started_at < self.deadline_at else self.started_at + DEADLINE_AFTER

    @property
    def is_held(self) -> bool:
        """Whether its notices wait for a person's decision."""
        return self.ruling is not None and self.ruling.kind is RulingKind.HELD

    @property
    def expires_at(self) -> datetime:
        """When what is still pending is given up."""
        return self.started_at + OPEN_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How the jobs of a run (or of one host) ended so far; `by_end` has a key per outcome or terminal status seen."""

    expected: int
    by_end: Mapping[str, int]

    @property
    def terminal(self) -> int:
        return sum(self.by_end.values())

    @property
    def pending(self) -> int:
        return self.expected - self.terminal


def work_order(chain: HostChain) -> tuple[int, str]:
    """Sorts chains: those with the most jobs left first, then by host."""
    return -chain.remaining, chain.host


def count_chains(chains: Iterable[HostChain]) -> RunCounts:
    """The run's arithmetic: the sum over its hosts."""
    expected = 0
    by_end: dict[str, int] = {}
    for chain in chains:
        expected += chain.total
        for end, count in chain.counts.items():
            by_end[end] = by_end.get(end, 0) + count
    return RunCounts(expected=expected, by_end={end: by_end[end] for end in COUNTED if end in by_end})


def weekly_run_id(intended_at: datetime) -> str:
    """`2026-09-28T09:00:00Z`: the intended time is the identity, so a duplicate trigger is the same run."""
    return format_seconds(intended_at)


def missed_run(intended_at: datetime, now: datetime) -> Run:
    """The record of a week that nobody ran."""
    return Run(
        run_id=weekly_run_id(intended_at),
        intended_at=intended_at,
        started_at=now,
        state=RunState.MISSED,
        expected=0,
        closed_at=now,
    )


def is_missed_too_early(run: Run, now: datetime) -> bool:
    """Whether a week that is not over is recorded as missed: by a clock that was ahead, so the record is void."""
    return run.state is RunState.MISSED and now < run.intended_at + WEEK


def gives_way(stored: Run, begun: Run) -> bool:
    """Whether a stored record is void and a run that begins now stands in its place."""
    return begun.state is not RunState.MISSED and is_missed_too_early(stored, begun.started_at)


def retry_run_id(run_id: str) -> str | None:
    """The id of the retry run that follows `run_id`, None after the last one allowed."""
    weekly, _, number = run_id.partition(_RETRY_MARK)
    following = int(number or 0) + 1
    return f"{weekly}{_RETRY_MARK}{following}" if following <= MAX_RETRY_RUNS else None


def later_retry_runs(run_id: str) -> Iterator[str]:
    """The ids of the retry runs that may follow `run_id`, in order."""
    following = retry_run_id(run_id)
    while following is not None:
        yield following
        following = retry_run_id(following)


def is_retry(run_id: str) -> bool:
    return _RETRY_MARK in run_id


def weekly_part(run_id: str) -> str:
    """The weekly run that a run belongs to: itself, or the one it retries."""
    return run_id.partition(_RETRY_MARK)[0]


def check_run_id(value: str) -> str:
    """The id itself. Raises ValueError unless it has the form of a run id."""
    weekly, mark, number = value.partition(_RETRY_MARK)
    if weekly_run_id(parse_utc(weekly)) != weekly or (mark and not (number.isascii() and number.isdigit())):
        raise ValueError(f"{value!r} is not a run id")
    return value


def job_id(run_id: str, link_id: str) -> str:
    return f"{run_id}:{link_id}"


def hand_job_id(sequence: int, link_id: str) -> str:
    """The id of a check by hand: it belongs to no run."""
    return f"{sequence}:{link_id}"


def split_job_id(value: str) -> tuple[str | None, str]:
    """The run id (None for a check by hand) and the link id of a job id."""
    run_id, _, link_id = value.rpartition(":")
    return (None if run_id.isdigit() else run_id), link_id


def is_late(run: Run, now: datetime) -> bool:
    """Whether the run was or is unfinished after its deadline."""
    return (run.closed_at or now) > run.deadline_at


def resend_due_at(chain: HostChain, next_allowed_at: datetime | None, lease_until: datetime | None) -> datetime:
    """When the tick may take a head for lost and send it again."""
    waits = [at for at in (chain.head_ready_at, next_allowed_at, lease_until) if at is not None]
    return max(waits) + RESEND_AFTER * (1 << min(chain.resends, 6))
