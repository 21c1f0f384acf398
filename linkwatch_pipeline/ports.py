"""What the use cases need from the outside world. Adapters fit these Protocols; `bootstrap` is where that is checked.

A store method is one complete write: after it, all of it is durable or none. All times are aware UTC.
Every method may raise StoreError (QueueError, DeliveryError); more is said where it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from linkwatch_pipeline.domain.alarms import Alarm, AlarmState
from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.hosts import (
    Admitted,
    Chance,
    Deferred,
    Departure,
    HostRecord,
)
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link, Owner
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import Recorded
from linkwatch_pipeline.domain.runs import (
    CheckJob,
    HostChain,
    JobRecord,
    JobStatus,
    Ruling,
    Run,
    RunCounts,
)
from linkwatch_pipeline.domain.transitions import Transition

T = TypeVar("T")


class Clock(Protocol):
    """Time as an argument. Only an adapter reads the machine's clock."""

    def now(self) -> datetime:
        """The current moment, aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Return when `duration` has passed on this clock."""
        ...


class RunBlocking(Protocol):
    """How a blocking call is made from a coroutine: on one writer thread, or directly in a simulation."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedWeek:
    """A week in the warehouse: how many observations its file holds, the file's SHA-256 (hex), and when it was made."""

    week: datetime
    rows: int
    sha256: str
    exported_at: datetime


class RegistryStore(Protocol):
    """Links and owners."""

    def save_link(self, link: Link, *, replaces: Link | None) -> None:
        """Write a link's configuration and state whole.

        Args: replaces: the link as it was read, None to create it.
        Raises: StaleWrite if the stored link is not `replaces` any more (or exists already).
        """
        ...

    def save_registry(self, *, owners: Sequence[Owner] = (), links: Sequence[tuple[Link, Link | None]] = ()) -> None:
        """Write new owners and any number of links: all of them or, whatever happens in the middle, none.

        Nobody sees some of them after a crash, a full disk or a StaleWrite. Somebody who reads while it is being
        written may see some links before others, as in any listing, but never a link before its new owner.
        How a store without large transactions keeps this is in docs/decisions/0009-a-registry-is-written-whole.md.

        Args:
            owners: teams to make. One that is stored with the same address is left as it is.
            links: each with the link as it was read, None to create it. A link id stands there once.
        Raises: StaleWrite if a stored link is not as it was read any more (or exists already), or a team has another
            address.
        """
        ...

    def get_link(self, link_id: str) -> Link | None: ...

    def links(self, *, owner: str | None = None) -> Iterator[Link]:
        """All links, or an owner's, in id order."""
        ...

    def links_by_host(self, *, after_host: str | None = None) -> Iterator[Link]:
        """All links in (host, id) order, streamed; only hosts that sort after `after_host` if given."""
        ...

    def put_owner(self, owner: Owner) -> None:
        """Write or replace a team's address."""
        ...

    def get_owner(self, team: str) -> Owner | None: ...

    def owners(self) -> Iterator[Owner]:
        """All owners in team order."""
        ...


class RunStore(Protocol):
    """Runs, their jobs and their host chains."""

    def create_run(self, run: Run) -> Run:
        """Put the run if it is absent; the stored one either way."""
        ...

    def get_run(self, run_id: str) -> Run | None: ...

    def runs(self, *, open_only: bool = False) -> Iterator[Run]:
        """Runs in run id order (which is time order); `open_only` leaves out those that are over (closed, missed)."""
        ...

    def allocate(self, links: Sequence[Link], slot: AllocationSlot, run_id: str) -> list[Allocation | None]:
        """The run's sequence for each link: the one it already holds in its slot, else the link's highest plus one.

        Each is a conditional write of its own (a store may commit them together). None where the stored link's url,
        config_version or retirement is not as in `links` any more and it holds no sequence of this run: look again.
        """
        ...

    def put_jobs(self, jobs: Sequence[JobRecord]) -> None:
        """Put, in the given order, each job that is absent; those already there stay as they are."""
        ...

    def put_chain(self, chain: HostChain) -> bool:
        """Put the chain if it is absent; whether it was."""
        ...

    def save_dispatch_progress(self, run_id: str, *, cursor: str, dispatched: int) -> None:
        """Remember the last host whose chain is complete, while the run is dispatching. Never moves backwards."""
        ...

    def finish_dispatch(self, run_id: str, *, expected: int, at: datetime) -> Run:
        """Every job exists: `dispatching` becomes `open`. Repeating it changes nothing."""
        ...

    def get_job(self, run_id: str, link_id: str) -> JobRecord | None: ...

    def jobs(self, run_id: str, *, host: str | None = None) -> Iterator[JobRecord]:
        """A run's jobs in (host, link id) order, or one host's in link id order."""
        ...

    def get_chain(self, run_id: str, host: str) -> HostChain | None: ...

    def chains(self, run_id: str) -> Iterator[HostChain]:
        """A run's chains in host order."""
        ...

    def end_job(self, job: JobRecord, *, status: JobStatus, reason: Reason) -> HostChain | None:
        """End a pending job without an observation, count it and move its chain on, in one transaction.

        Returns: the chain afterwards, None if the job was not pending any more (nothing is written).
        """
        ...

    def step_chain(self, job: JobRecord) -> HostChain | None:
        """Move the head past a terminal job that is still the head; counters stay. None if it is not the head."""
        ...

    def defer_head(self, job: JobRecord, *, until: datetime, now: datetime) -> bool:
        """Set the head's ready time if the job is still the head and was due (head_ready_at <= now + 2 s).

        Returns: whether the caller is the one to send the head's next message.
        """
        ...

    def count_deferral(self, job: JobRecord) -> int:
        """Count one deferral of a pending job for a busy redirect host; the count afterwards."""
        ...

    def resend_head(self, chain: HostChain, *, now: datetime) -> bool:
        """Claim the right to send a lost head again: resends + 1 and head_ready_at = now, if the chain is as read."""
        ...

    def rechain(self, run_id: str, host: str, *, now: datetime) -> HostChain | None:
        """Make a chain agree with its jobs again; None if there is nothing to mend.

        An empty head points at the first pending job, `remaining` and `total` count the pending and all jobs.
        """
        ...

    def close_run(self, run_id: str, *, totals: RunCounts, at: datetime) -> Run:
        """Write the totals once and close the run. Repeating it changes nothing."""
        ...

    def rule_on_run(self, run_id: str, ruling: Ruling, *, replaces: Ruling | None) -> bool:
        """Write what was decided about a run's notices, if `replaces` is what was decided before; whether it was."""
        ...

    def prune_runs(self, *, started_before: datetime) -> int:
        """Forget jobs, chains and summaries of closed runs started before then, except held ones; how many runs."""
        ...


class HostStore(Protocol):
    """Host admission."""

    def acquire_host(
        self, host: str, *, token: str, job_id: str, now: datetime, skew: timedelta
    ) -> Admitted | Deferred:
        """Admit one visitor (`domain.hosts.admit`), conditionally. Counts a death of the job whose visitor never left,
        if that job is still pending, in the same transaction."""
        ...

    def release_host(
        self,
        host: str,
        *,
        token: str,
        departure: Departure,
        cooldown: timedelta,
        chance: Chance,
    ) -> HostRecord | None:
        """Let the visitor out (`domain.hosts.leave`); the record, None if the token does not hold the host any more."""
        ...

    def void_leases(self, *, token_prefix: str, now: datetime, cooldown: timedelta) -> int:
        """End every lease whose token begins so, as if its visitor left now without an answer; how many.

        For a laptop, where a lock proves that the process is dead. No death is counted.
        """
        ...

    def get_host(self, host: str) -> HostRecord | None: ...


class HistoryStore(Protocol):
    """Observations and transitions."""

    def record(self, observation: Observation, *, default_confirm: int, now: datetime) -> Recorded:
        """Commit one observation and all that follows from it (`domain.recording.plan_record`), or nothing.

        Raises: ConflictingContent (reused id or sequence), NotFound (no such link; a job id of a run without that job).
        """
        ...

    def observations(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[Observation]:
        """Observations in (link, sequence) order; `since` <= observed_at < `until`."""
        ...

    def transitions(self, *, link_id: str | None = None) -> Iterator[Transition]:
        """Transitions in (link, version) order."""
        ...

    def mark_exported(self, exported: ExportedWeek) -> None:
        """Remember that a week is in the warehouse, replacing an earlier export of it."""
        ...

    def exported_weeks(self) -> Iterator[ExportedWeek]:
        """In week order."""
        ...

    def prune_observations(self, *, week: datetime, expect_rows: int) -> int:
        """Delete a week's observations if exactly `expect_rows` are stored (else StaleWrite); how many."""
        ...


class OutboxStore(Protocol):
    """Notices, and what stops their delivery."""

    def notices(
        self,
        *,
        link_id: str | None = None,
        run_id: str | None = None,
        unsettled_only: bool = False,
    ) -> Iterator[Notice]:
        """Notices in (created_at, transition id) order. `unsettled_only` leaves out those that are sent or settled
        otherwise (delivered, bounced, complained, muted, discarded); failed ones stay in."""
        ...

    def get_notice(self, transition_id: str) -> Notice | None: ...

    def claim_notice(self, transition_id: str, *, by: str, now: datetime) -> Notice | None:
        """Take a claimable notice (`domain.notices.is_claimable`) conditionally; None if somebody else was faster."""
        ...

    def save_notice(self, notice: Notice, *, claimed_by: str) -> bool:
        """Write the delivery fields of a notice that `claimed_by` still holds; False (nothing written) otherwise."""
        ...

    def update_notice(self, notice: Notice, *, replaces: Notice) -> bool:
        """Write the delivery fields of a notice, whoever holds it; False (nothing written) if it is not as in
        `replaces` any more. A holder whose claim this ends cannot save its own word afterwards."""
        ...

    def mutes(self) -> Iterator[Mute]:
        """All mutes, those that ended included, in target order."""
        ...

    def save_mute(self, mute: Mute, *, replaces: Mute | None) -> bool:
        """Write a target's mute whole; False (nothing written) if the stored one is not `replaces` (None: absent)."""
        ...


class Store(RegistryStore, RunStore, HostStore, HistoryStore, OutboxStore, Protocol):
    """The system of record, whole."""

    def close(self) -> None:
        """Release files and connections. The store cannot be used afterwards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One delivery of a message: `handle` acknowledges exactly this delivery; `receive_count` begins at 1."""

    job: CheckJob
    handle: str
    receive_count: int


class Queue(Protocol):
    """Ready work. Delivery is at least once; a message not acknowledged comes back after its visibility timeout.

    After `max_receives` deliveries (5) a message becomes a dead letter instead of coming back.
    """

    def send(self, jobs: Sequence[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        """Add messages that become visible after `delay` (0 to 900 s)."""
        ...

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        """Visible messages, hidden from now on for the visibility timeout (180 s); [] when there are none."""
        ...

    def acknowledge(self, receipt: Receipt) -> None:
        """Delete the message. An outdated receipt is ignored."""
        ...

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        """Let the message come back after `delay` instead. An outdated receipt is ignored."""
        ...

    def next_visible_in(self) -> timedelta | None:
        """How long until a message may be received; zero when one is, None when nothing waits or nobody can know."""
        ...

    def dead_letters(self) -> list[CheckJob]:
        """The messages that were given up, oldest first; reading does not remove them."""
        ...

    def remove_dead_letter(self, job_id: str) -> bool:
        """Take one out of the dead letters; whether it was there."""
        ...


class HopGate(Protocol):
    """Asked by the fetcher before each redirect hop and told after each answer, so that every hop is a polite visit."""

    async def enter(self, host: str) -> None:
        """Return when the host may be visited. Raises HopDeferred or HopRefused (domain.fetching)."""
        ...

    async def leave(self, departure: Departure) -> None:
        """The connection to the host entered last has ended."""
        ...


class Fetcher(Protocol):
    """Bounded, safe GETs."""

    async def fetch(self, url: str, gate: HopGate) -> FetchResult:
        """GET `url` and follow its redirects, within the bounds of `domain.fetching`.

        `gate.enter(host)` is awaited before the first connection and before every hop, `gate.leave(...)` after each
        connection ended, whatever happened. A gate's HopRefused becomes the result's failure; its HopDeferred is
        raised on. Everything else that goes wrong on the network is a result, never an exception.
        """
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One e-mail, ready but for its transport.

    `transition_id` is the mail's own id: the transition that it tells, or an id derived from owner and run if it tells
    several. Providers carry it, escaped, back in their events. `transition_ids` are then all that it tells.
    """

    transition_id: str
    transition_ids: tuple[str, ...] = ()
    sender: str
    recipient: str
    copies: tuple[str, ...] = ()
    subject: str
    text: str
    html: str
    message_id: str
    date: datetime
    references: tuple[str, ...] = ()


class Notifier(Protocol):
    """Hands mails to a provider."""

    def send(self, mail: Mail) -> str:
        """The provider's id of the accepted mail. Raises DeliveryError, whose kind says what is known."""
        ...


class Metrics(Protocol):
    """Numbers for machines."""

    def put(self, name: str, value: float, *, unit: str = "Count", at: datetime) -> None: ...


class AlarmDestination(Protocol):
    """Where on-call is told of linkwatch's own health, apart from owner mail."""

    def tell(self, alarm: Alarm) -> None:
        """Hand one alarm over. Raises AlarmNotTaken."""
        ...


class AlarmMemory(Protocol):
    """What on-call was told, kept over restarts."""

    def alone(self) -> AbstractContextManager[AlarmState | None]:
        """Be the only one who tells, during the block: what is remembered, or None if another one tells now."""
        ...

    def read(self) -> AlarmState:
        """What is remembered, without waiting for anybody."""
        ...

    def save(self, state: AlarmState) -> None:
        """Remember, durably. Raises OSError if that cannot be written."""
        ...


class Warehouse(Protocol):
    """The history by week, for reports: Parquet files, kept when the store has pruned."""

    def write_week(self, week: datetime, observations: Iterable[Observation]) -> ExportedWeek:
        """Write (or replace) one week's file, atomically."""
        ...

    def verify_week(self, exported: ExportedWeek) -> bool:
        """Whether the week's file is there with the exported content."""
        ...

    def read_week(self, week: datetime) -> Iterator[Observation]:
        """The observations of a week's file, in (link, sequence) order; nothing if there is no file."""
        ...


class Reports(Protocol):
    """What the warehouse's weeks say. A link counts once a week, checks by hand never (`domain.coverage`).

    A week without a file, or without looks of a run, is left out or answered with nothing.
    Each may raise StoreUnusable (a damaged file) and MissingExtra.
    """

    def weeks(self) -> Sequence[datetime]:
        """The weeks that have a file, in order."""
        ...

    def outcomes_by_week(self, *, through: datetime) -> Mapping[datetime, Mapping[Outcome, int]]:
        """How many links ended with which outcome, each week up to `through`; what did not occur is left out."""
        ...

    def worst_hosts(self, week: datetime, *, most: int) -> Ranked[HostTrouble]:
        """The hosts with the most links broken, uncertain or throttled, the worst first."""
        ...

    def repeated_uncertainty(self, week: datetime, *, at_least: int, most: int) -> Ranked[RepeatedUncertainty]:
        """The links uncertain in this and the weeks before it, `at_least` in a row, the longest first."""
        ...

    def content_changed(self, week: datetime, *, most: int) -> Ranked[ChangedContent]:
        """The links whose page lacked the expected text, in id order."""
        ...


class Progress(Protocol):
    """Told what happens while a run goes on, for people who watch."""

    def job_ended(self, job: JobRecord, end: str) -> None: ...

    def note(self, text: str) -> None: ...
