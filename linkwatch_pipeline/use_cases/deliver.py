"""Telling owners: every notice that is due goes into a mail (SPEC 10), which `send_mail` sends.

A mail tells one notice, or all of an owner's notices of one run that are due together (a digest). Mails about one link
go in order, and what an owner was told last decides what is told next (`domain.telling`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.notices import MOST_TEAMS_TOLD, Notice, NoticeStatus, is_claimable, run_of_digest
from linkwatch_pipeline.ports import Clock, Damaged, Notifier, Store
from linkwatch_pipeline.use_cases.damage import Damage, each_alone, read_runs, refuse_damaged_run
from linkwatch_pipeline.use_cases.mute import lift_mutes
from linkwatch_pipeline.use_cases.release import release_notices
from linkwatch_pipeline.use_cases.reopen import reopen_refused
from linkwatch_pipeline.use_cases.send_mail import Sender, send_mail
from linkwatch_pipeline.use_cases.set_aside import End, has_to_wait, owner_of

MOST_IN_A_MAIL = 1000  # all of its notices are claimed and written down well within one claim


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """How many notices a delivery brought to which end.

    `retried` were not accepted and will be tried again. `waiting` are the unsettled ones that it left alone: not due,
    in another sender's hands, given up earlier, or beyond the limit. `without_owner` have nobody to be told. `held`
    wait for a person's decision about their run. `muted` and `discarded` are settled without a mail. `damaged` cannot
    be read until somebody mends them.
    """

    sent: int = 0
    retried: int = 0
    failed: int = 0
    unknown: int = 0
    waiting: int = 0
    without_owner: int = 0
    held: int = 0
    muted: int = 0
    discarded: int = 0
    damaged: int = 0

    @property
    def unsent(self) -> int:
        """Notices that nobody has been told of for certain, and somebody should be."""
        to_be_told = self.retried + self.failed + self.unknown + self.waiting + self.without_owner + self.held
        return to_be_told + self.damaged


def deliver_notices(
    store: Store,
    notifier: Notifier,
    *,
    clock: Clock,
    sender: str,
    claimant: str,
    limit: int | None = None,
    life: timedelta | None = None,
    breaker: BreakerRules | None = None,
    refused_too: bool = False,
) -> DeliveryReport:
    """Send every notice that is due, oldest first, whatever day it was made. One bad notice never stops the others.

    A damaged one is left as it is. So is one of which nobody can say whether, or to whom, it is to be told before
    something else is mended: its run, its owner, its link, another notice of the same link, a mute that may cover it.

    Runs whose time has come are ruled on first, and mutes that are over lifted.

    Args:
        sender: the address that mails come from.
        claimant: names this sender; unique among all that may be at work.
        limit: how many notices to try at most; None for all.
        life: how long this process goes on at most; a mail that would outlast it is not begun, so that none is cut in
            the middle. None for as long as it takes.
        breaker: when a run is suspect; None for the usual rules.
        refused_too: whether those that were refused for good are tried again, though their address is the same.
    """
    ends_at = clock.monotonic() + life.total_seconds() if life is not None else None
    damage, unread = Damage(), list[DamagedRecord]()
    damaged_runs = prepare_delivery(store, breaker or BreakerRules(), now=clock.now(), damaged=damage)
    sending = Sender(
        store=store,
        notifier=notifier,
        clock=clock,
        address=sender,
        claimant=claimant,
        ends_at=ends_at,
        damaged=damage,
        damaged_runs=damaged_runs,
    )
    if refused_too:
        reopen_refused(store, now=clock.now(), damaged=damage, whatever_address=True)
    ends: Counter[End] = Counter()
    tried = 0
    # Read whole, since what is read changes meanwhile; unsettled notices are few.
    notices = list(store.notices(unsettled_only=True, damaged=unread.append))
    for error in unread:
        damage(error)
    for mail in _mails(store, notices):
        now = clock.now()
        claimable = [notice for notice in mail if is_claimable(notice, now)]
        due = claimable[: limit - tried] if limit is not None else claimable
        due = due if sending.has_time_for(len(due)) else []
        tried += len(due)
        ends.update(_left_alone(notice) for notice in mail if not is_claimable(notice, now))
        ends.update([End.WAITING] * (len(claimable) - len(due)))
        ends.update(send_mail(sending, due))
    return DeliveryReport(**{end.value: ends[end] for end in End}, damaged=len(unread))


def prepare_delivery(store: Store, breaker: BreakerRules, *, now: datetime, damaged: Damaged) -> list[DamagedRecord]:
    """Rule on the runs whose time has come, release or hold their notices, lift the mutes that are over, and take up
    again what an address refused that was replaced since.

    Returns: the runs that are damaged: nothing is sent of them.
    """
    damaged_runs = release_notices(store, breaker, now=now, damaged=damaged)
    lift_mutes(store, now=now, damaged=damaged)
    reopen_refused(store, now=now, damaged=damaged)
    return damaged_runs


def due_notices(store: Store, *, now: datetime) -> list[Notice]:
    """The unsettled notices that a delivery would do something about now: not those that nobody can be told."""
    damage, due = Damage(), list[Notice]()
    _, damaged_runs = read_runs(store, damage)

    def look(notice: Notice) -> None:
        refuse_damaged_run(notice.run_id, damaged_runs)
        if is_claimable(notice, now) and owner_of(store, notice) and not has_to_wait(store, notice, now=now):
            due.append(notice)

    each_alone(store.notices(unsettled_only=True, damaged=damage), look, damage)
    return due


def notices_of_mail(store: Store, mail_id: str) -> list[Notice]:
    """All notices that a mail told, by the id that it carried (`Mail.transition_id`); none if nobody knows it."""
    run_id = run_of_digest(mail_id)
    if run_id is not None:
        return [notice for notice in store.notices(run_id=run_id) if notice.mail_id == mail_id]
    notice = store.get_notice(mail_id)
    return [notice] if notice is not None else []


def _mails(store: Store, notices: Sequence[Notice]) -> list[list[Notice]]:
    """The notices that go together in one mail, in the order of the first of each.

    A digest is cut where it would be very long, or copied to more teams than a provider takes addresses.
    """
    mails: dict[tuple[str, ...], list[Notice]] = {}
    for notice in notices:
        mails.setdefault(_mail_key(store, notice), []).append(notice)
    return [part for mail in mails.values() for part in _cut(mail)]


def _cut(mail: Sequence[Notice]) -> Iterator[list[Notice]]:
    part: list[Notice] = []
    teams: set[str] = set()
    for notice in mail:
        more = teams.union(notice.also_used_by)
        if part and (len(part) == MOST_IN_A_MAIL or len(more) > MOST_TEAMS_TOLD):
            yield part
            part, more = [], set(notice.also_used_by)
        part.append(notice)
        teams = more
    yield part


def _mail_key(store: Store, notice: Notice) -> tuple[str, ...]:
    """What a notice has in common with those in its mail. Whoever was tried in one mail is tried again in that one."""
    if notice.mail_id is not None:
        return (notice.mail_id,)
    try:
        owner = owner_of(store, notice)
    except DamagedRecord:
        owner = None  # it stands alone, and is left waiting when it is its turn
    if owner is None or owner.delivery is Delivery.EACH or notice.run_id is None:
        return (notice.transition_id,)
    return (owner.team, notice.run_id)


def _left_alone(notice: Notice) -> End:
    return End.HELD if notice.status is NoticeStatus.HELD else End.WAITING
