"""What the verdict on linkwatch itself rests on: facts from the store, gathered by whoever looks (SPEC 11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.mutes import MuteView
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressTrouble:
    """Mails to a team's present address that came back or were reported as unwanted, oldest first.

    `notices` are those that have `status` (`bounced` or `complained`) and no later delivery to contradict them.
    """

    team: str
    status: NoticeStatus
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How an open run gets on, read off its chains.

    `moved_at` is when a job of it last ended, or when it was dispatched; `due_since` when the oldest head that is due
    became due, None if every host rests; `resent` the hosts whose head was sent again and again.
    """

    run: Run
    moved_at: datetime
    due_since: datetime | None
    resent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenLinks:
    """Watched links that nothing was observed of for two weeks.

    `examples` are a few of `count`; `is_more` is whether counting stopped there.
    """

    count: int = 0
    examples: tuple[str, ...] = ()
    since: datetime | None = None
    is_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A moment that some process wrote down, and in what."""

    what: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFacts:
    """What the verdict rests on. `watched_since` is when the first active link was registered, None without links.

    `runs` are the runs of the current week, and older ones that are open, held or not ruled on; `missed_weeks` the
    weeks that nobody ran. `unsettled` are the notices that are neither sent nor settled otherwise. `newest` is the
    latest moment that any process wrote into what was read. `damaged` are the records that the facts leave out.
    `batch_begun_at` is when many links began to be written, all or none, that are not written yet.
    `queue_problem` says why the queue of all workers, or that of its dead letters, cannot do its work.
    """

    now: datetime
    watched_since: datetime | None
    runs: tuple[Run, ...]
    unsettled: tuple[Notice, ...]
    dead_letters: int
    progress: tuple[RunProgress, ...] = ()
    missed_weeks: tuple[Run, ...] = ()
    unexported_weeks: tuple[datetime, ...] = ()
    mutes: tuple[MuteView, ...] = ()
    address_troubles: tuple[AddressTrouble, ...] = ()
    lost_copies: tuple[Notice, ...] = ()
    unseen: UnseenLinks = UnseenLinks()
    newest: Stamp | None = None
    damaged: tuple[DamagedRecord, ...] = ()
    batch_begun_at: datetime | None = None
    queue_problem: str | None = None
