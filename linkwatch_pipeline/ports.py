"""What the use cases need from the outside world. Adapters fit these Protocols; `bootstrap` is where that is checked.

A store method is one complete write: after it, all of it is durable or none. All times are aware UTC.
Every method may raise StoreError (QueueError, DeliveryError); more is said where it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar

from linkwatch_pipeline.domain.alarms import Alarm, AlarmState
from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty
from linkwatch_pipeline.domain.fetching import FetchResult
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
from linkwatch_pipeline.domain.service_changes import ServiceChange
from linkwatch_pipeline.domain.service_status import (
    SeenStatus,
    Service,
    ServiceCheck,
    ServiceDay,
    StatusMessage,
    StatusRecord,
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


# Everything that a store keeps for others.
StoredRecord = (
    Owner | Link | Run | JobRecord | HostChain | HostRecord | Observation | Transition | Notice | Mute | ExportedWeek
)


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

    def longest_chains(self, run_id: str, *, limit: int, ready_by: datetime | None = None) -> Sequence[HostChain]:
        """At most `limit` chains with jobs left, those with the most first, then in host order (`runs.work_order`).

        Args: ready_by: leaves out those whose head is ready later.
        """
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

    def claim_start(self, chain: HostChain, *, ready_at: datetime, now: datetime) -> bool:
        """Claim the right to send a chain's first head: planned_sent_at = now and head_ready_at = `ready_at`.

        Only if the chain is as read (head, head_ready_at, resends) and nobody claimed it before.
        """
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

    def hosts(self) -> Iterator[HostRecord]:
        """All host records in host order. For moving them; may read everything that is stored."""
        ...


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

    def restore(self, records: Iterable[StoredRecord], *, source: str) -> int:
        """Put the records of another store as they are into this one, which has to be empty; how many.

        A store without large transactions may keep a part of them when it is interrupted. It goes on when the same
        records are put again, and takes no others.

        Args:
            records: in the order of `use_cases.move_history`: each after what it belongs to.
            source: names these records.
        Raises: StaleWrite if there is anything in the store, unless it is a part of these records.
        """
        ...

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
    """The history by week, for reports: Parquet files, kept when the store has pruned (docs/reference/warehouse.md)."""

    def write_week(self, week: datetime, observations: Iterable[Observation]) -> ExportedWeek:
        """Write (or replace) one week's file, atomically."""
        ...

    def verify_week(self, exported: ExportedWeek) -> bool:
        """Whether the week's file is there with the exported content."""
        ...

    def read_week(self, week: datetime) -> Iterator[Observation]:
        """The observations of a week's file, in (link, sequence) order; nothing if there is no file."""
        ...

    def write_transitions(self, week: datetime, transitions: Iterable[Transition]) -> None:
        """Write (or replace) one week's transitions, atomically."""
        ...

    def read_transitions(self, week: datetime) -> Iterator[Transition]:
        """A week's transitions in (link, version) order; nothing if there is no file."""
        ...

    def write_notices(self, week: datetime, notices: Iterable[Notice]) -> None:
        """Write (or replace) one week's notices, atomically."""
        ...

    def read_notices(self, week: datetime) -> Iterator[Notice]:
        """A week's notices in transition id order; nothing if there is no file."""
        ...

    def write_links(self, links: Iterable[Link]) -> None:
        """Write (or replace) the registry as it is now: who owns a link and where it stands."""
        ...

    def summarise_week(self, week: datetime) -> bool:
        """Bring a week's aggregates up to date with the files of it and the next; whether that took writing."""
        ...

    def set_aside(self, week: datetime) -> str:
        """Rename a week's damaged file, so that the other weeks can be read; its new name."""
        ...

    def write_views(self) -> None:
        """Write the DuckDB file with the views over the warehouse, for analysts."""
        ...

    def forget_weeks(self, *, before: datetime) -> Sequence[datetime]:
        """Delete the observations of earlier weeks that have aggregates; these stay for good. The weeks deleted now."""
        ...


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRun:
    """A made-up run as it will have closed, and its looks in (link, sequence) order."""

    run: Run
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedWeek:
    """A made-up week that is in the warehouse: its closed runs, and the changes that it made."""

    exported: ExportedWeek
    runs: tuple[Run, ...]
    transitions: tuple[Transition, ...]
    notices: tuple[Notice, ...]


class History(Protocol):
    """A made-up history of links. Its weeks are asked for in order, each once, in one of two ways."""

    def owners(self) -> Sequence[Owner]: ...

    def links(self) -> Iterator[Link]:
        """The links as they stand after the weeks that were played; before the first, as registered."""
        ...

    def next_week(self, week: datetime) -> Iterator[ScriptedRun]:
        """The looks of a week's runs, for somebody who records them one by one."""
        ...

    def play_week(self, week: datetime) -> PlayedWeek:
        """Record a week's looks straight into the warehouse, with what a store would have made of them."""
        ...


class Progress(Protocol):
    """Told what happens while a run goes on, for people who watch."""

    def job_ended(self, job: JobRecord, end: str) -> None: ...

    def note(self, text: str) -> None: ...


class ServiceDirectory(Protocol):
    """Whose status is watched. Kept by somebody else: it is only read."""

    def services(self, *, user_id: str | None = None) -> list[Service]:
        """The active services, or a user's, in id order. Raises StoreUnavailable."""
        ...


class StatusQueue(Protocol):
    """Checks on their way from the monitor to the processor. Delivery is at least once, in any order.

    A message not acknowledged comes back after 60 s; after 3 deliveries it becomes a dead letter.
    """

    def send(self, checks: Sequence[ServiceCheck]) -> list[ServiceCheck]:
        """Hand over each check at most once; those that were not accepted, or may not have been."""
        ...

    def receive(self) -> list[StatusMessage]:
        """Up to ten messages, hidden from now on for the visibility timeout; [] when there are none."""
        ...

    def acknowledge(self, messages: Sequence[StatusMessage]) -> None:
        """Delete these deliveries. Outdated ones are ignored."""
        ...


class StatusCache(Protocol):
    """The latest status of each service, for 90 s."""

    def put(self, records: Sequence[StatusRecord]) -> None:
        """Write each, unless a newer one is there. Repeating it changes nothing but the time it lives on.

        Raises: StoreUnavailable; some may then be written.
        """
        ...

    def get(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        """What is there, by service id. Raises StoreUnavailable."""
        ...


class RowEnd(StrEnum):
    """What became of a row: written (now or before), of a service that is gone, or refused by the database for good."""

    WRITTEN = "written"
    GONE = "gone"
    REFUSED = "refused"


class StatusHistory(Protocol):
    """Every status, one row per message."""

    def add(self, records: Sequence[StatusRecord]) -> list[RowEnd]:
        """Write those that are absent; the end of each, in order. One bad row never stops the others.

        Raises: StoreUnavailable; repeating it is safe.
        """
        ...

    def latest(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        """The newest row of each service that has one. Raises StoreUnavailable."""
        ...

    def since(self, service_id: str, moment: datetime) -> list[SeenStatus]:
        """A service's rows from then on, the newest first. Raises StoreUnavailable."""
        ...

    def day(self, since: datetime, until: datetime) -> list[ServiceDay]:
        """What each active service was seen doing in since <= checked_at < until, in id order."""
        ...

    def prune(self, *, before: datetime, most: int) -> int:
        """Delete rows older than that, at most so many; how many. Only called when pruning is switched on."""
        ...


class ChangeLog(Protocol):
    """Changes of services' states, written with the row that made them; told once each."""

    def untold(self, *, limit: int) -> list[ServiceChange]:
        """The oldest changes that are not marked as told."""
        ...

    def mark_told(self, changes: Sequence[ServiceChange]) -> None:
        """Remember that these are in the outbox. Repeating it changes nothing."""
        ...
