"""Weeks of telling owners, in virtual time, with senders that fail in every way and die between any two steps.

    python -m linkwatch_pipeline_tests.simulation.delivery 4711 40     # replay one seed, 40 weeks

Links break and recover in weekly runs and in checks by hand; owners want single mails or digests, mute, unmute and
acknowledge; runs look suspect, and a person releases or discards them, sometimes late. Afterwards every transition has
to be accounted for, and every mail that somebody got twice has to be one that the policy admits.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Link, LinkState, Owner
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus, is_possible_duplicate
from linkwatch_pipeline.domain.runs import JobStatus, Run, RunState, count_chains
from linkwatch_pipeline.domain.telling import told_state, version_of
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.ports import Mail, Store
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import deliver_notices
from linkwatch_pipeline.use_cases.mute import acknowledge, mute, unmute
from linkwatch_pipeline.use_cases.release import discard_run, release_notices, release_run
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation, dispatched
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.whole_numbers import whole_number

TEAMS = {"each": Delivery.EACH, "digest": Delivery.DIGEST, "other": Delivery.DIGEST}
HOSTS = {"one": 1, "two": 3, "three": 2, "four": 1, "five": 1, "six": 1}
RULES = BreakerRules(hosts=3, links=4)
LOOKS = (0.05, 0.4, 0.55, 1.0, 1.2, 3.0, 12.0, 24.0, 26.0, 60.0, 61.0, 100.0, 130.0)  # hours after Monday 09:00
# What a mail is owed before the account is closed: every wait of the policy passes many times over.
LAST_LOOKS = 40
_WRITES = {"claim_notice", "save_notice", "update_notice", "rule_on_run", "save_mute"}


class Crash(BaseException):
    """The process is gone."""


@dataclass(slots=True)
class Faults:
    """How much goes wrong, drawn per seed. Probabilities are per call."""

    crash: float
    not_accepted: float
    permanent: float
    unknown: float

    @classmethod
    def drawn(cls, chance: random.Random) -> Faults:
        return cls(
            crash=chance.choice([0.0, 0.01, 0.05]),
            not_accepted=chance.choice([0.0, 0.1, 0.5]),
            permanent=chance.choice([0.0, 0.0, 0.03]),
            unknown=chance.choice([0.0, 0.05, 0.2]),
        )


@dataclass(slots=True)
class FailingStore:
    """The store as one process sees it: it may die before or after any write of the outbox."""

    store: Store
    chance: random.Random
    faults: Faults

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.store, name)
        return self._dying(call) if name in _WRITES else call

    def _dying(self, call: Any) -> Any:
        def write(*args: Any, **kwargs: Any) -> Any:
            self.die()
            written = call(*args, **kwargs)
            self.die()
            return written

        return write

    def die(self) -> None:
        if self.chance.random() < self.faults.crash / 4:
            raise Crash


@dataclass(slots=True)
class FailingProvider:
    """A provider that refuses, loses its answer before or after accepting, or outlives its caller."""

    chance: random.Random
    faults: Faults
    accepted: list[Mail] = field(default_factory=list)
    admitted: Counter[str] = field(default_factory=Counter)

    def send(self, mail: Mail) -> str:
        drawn = self.chance.random
        if drawn() < self.faults.not_accepted:
            raise DeliveryError("busy", DeliveryFailure.NOT_ACCEPTED)
        if drawn() < self.faults.permanent:
            raise DeliveryError("no such mailbox", DeliveryFailure.PERMANENT)
        self._maybe_lost()
        self._accept(mail)
        self._maybe_lost()
        return f"provider-{len(self.accepted)}"

    def _maybe_lost(self) -> None:
        if self.chance.random() < self.faults.unknown / 2:
            raise DeliveryError("the connection broke", DeliveryFailure.UNKNOWN)
        if self.chance.random() < self.faults.crash / 2:
            raise Crash

    def _accept(self, mail: Mail) -> None:
        self.accepted.append(mail)
        if "may have this mail already" in mail.text:
            self.admitted.update(mail.transition_ids or (mail.transition_id,))


@dataclass
class Account:
    """What became of the transitions of one seed: how many ended how, and how many mails came twice."""

    weeks: int
    ends: Counter[str]
    mails: int
    digests: int
    duplicates: int
    crashes: int
    suspect_runs: int


class Town:
    """Some hosts with links, their owners, a store, and senders that fail."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.faults = Faults.drawn(self.chance)
        self.store = SqliteStore.open(Path(":memory:"))
        self.clock = VirtualClock(MONDAY)
        self.provider = FailingProvider(self.chance, self.faults)
        self.breaks = self.chance.choice([0.03, 0.15, 0.4])
        self.crashes = self.suspect_runs = self.senders = 0
        for team, delivery in TEAMS.items():
            self.store.put_owner(Owner(team=team, address=f"{team}@example.com", delivery=delivery))
        self.links = list(self._links())

    def _links(self) -> Iterator[str]:
        teams = sorted(TEAMS)
        for host, count in HOSTS.items():
            for number in range(count):
                link = a_link(f"{host}-{number}", f"https://{host}.example.com/{number}")
                owner = None if self.chance.random() < 0.05 else self.chance.choice(teams)
                self.store.save_link(_changed(link, owner), replaces=None)
                yield link.id

    def live(self, weeks: int) -> Account:
        """Let so many weeks go by and close the account. Raises AssertionError with the seed if a promise is broken."""
        try:
            for week in range(weeks):
                self._week(week)
            self._come_to_rest()
            return self._account(weeks)
        except AssertionError as broken:
            raise AssertionError(f"seed {self.seed}: {broken}") from broken
        finally:
            self.store.close()

    def _week(self, week: int) -> None:
        monday = MONDAY + week * WEEK
        self._until(monday)
        run = a_run(monday)
        jobs = dispatched(self.store, [self._link(link_id) for link_id in self.links], run=run)
        self.chance.shuffle(jobs)
        silent = self.chance.random() < 0.1  # the checker lost its network
        bad = self.chance.random() < 0.1
        late = self.chance.randrange(len(jobs)) if self.chance.random() < 0.3 else len(jobs)
        for number, job in enumerate(jobs):
            if number == late:
                self._until(monday + timedelta(minutes=35))
                self._look()
            self._observe(self._link(job.link_id), self._answer(silent, bad), job=job)
        self._until(self.clock.now() + timedelta(minutes=1))
        self._close(run)
        for hours in LOOKS:
            self._until(monday + timedelta(hours=hours))
            self._somebody_does_something()
            self._look()

    def _answer(self, silent: bool, bad: bool) -> int | None:
        if silent and self.chance.random() < 0.9:
            return None
        breaks = 0.8 if bad else self.breaks
        return 404 if self.chance.random() < breaks else self.chance.choice([200, 200, 200, 200, 429, None])

    def _observe(self, link: Link, status: int | None, **how: Any) -> None:
        now = self.clock.now()
        look = an_observation(link, status, started_at=now, observed_at=now, **how)
        self.store.record(look, default_confirm=1, now=now)

    def _close(self, run: Run) -> None:
        counts = count_chains(self.store.chains(run.run_id))
        assert counts.by_end.get(JobStatus.DONE.value, 0) == 0
        assert self.store.close_run(run.run_id, totals=counts, at=self.clock.now()).state is RunState.CLOSED

    def _somebody_does_something(self) -> None:
        drawn, now = self.chance.random(), self.clock.now()
        link = self._link(self.chance.choice(self.links))
        target = self.chance.choice([link.id, f"host:{link.host}"])
        with suppress(Crash):
            if drawn < 0.06:
                until = (now + timedelta(hours=self.chance.choice([1, 30, 200, 500]))).isoformat()
                mute(self._process(), target, until=until, reason="r", by=None, now=now)
            elif drawn < 0.12:
                for known in [m for m in self.store.mutes() if m.is_active(now)][:1]:
                    unmute(self._process(), known.target, now=now)
            elif drawn < 0.2:
                self._observe(link, self._answer(False, False), sequence=link.highest_sequence + 1)
            elif drawn < 0.3:
                self._decide()
            elif drawn < 0.33 and link.owner is None:
                self.store.save_link(_changed(link, "each"), replaces=link)
            elif drawn < 0.35 and link.state is LinkState.BROKEN:
                acknowledge(self.store, link.id, reason="known", by=None, now=now)
            elif drawn < 0.36:
                team, delivery = self.chance.choice(sorted(TEAMS)), self.chance.choice(list(Delivery))
                self.store.put_owner(Owner(team=team, address=f"{team}@example.com", delivery=delivery))

    def _decide(self) -> None:
        for run in [run for run in self.store.runs() if run.is_held][:1]:
            self.suspect_runs += 1
            if self.chance.random() < 0.6:
                release_run(self._process(), run.run_id, by="ops", now=self.clock.now())
            else:
                discard_run(self._process(), run.run_id, by="ops", why=None, now=self.clock.now())

    def _look(self) -> None:
        """Up to three senders, one after the other, each of which may die; or only a health check."""
        for _ in range(self.chance.randint(1, 3)):
            self.senders += 1
            try:
                if self.chance.random() < 0.1:
                    release_notices(self._process(), RULES, now=self.clock.now(), damaged=Damage())
                    continue
                deliver_notices(
                    self._process(),
                    self.provider,
                    clock=self.clock,
                    sender="linkwatch@example.com",
                    claimant=f"sender-{self.senders}",
                    breaker=RULES,
                )
            except Crash:
                self.crashes += 1

    def _process(self) -> Any:
        return FailingStore(self.store, self.chance, self.faults)

    def _until(self, moment: Any) -> None:
        self.clock.advance(max(moment - self.clock.now(), timedelta(0)))

    def _link(self, link_id: str) -> Link:
        link = self.store.get_link(link_id)
        assert link is not None
        return link

    def _come_to_rest(self) -> None:
        """Nothing fails any more, every run is decided about, every link has an owner, every mute runs out."""
        self.faults.crash = self.faults.not_accepted = self.faults.unknown = self.faults.permanent = 0.0
        for link_id in self.links:
            link = self._link(link_id)
            if link.owner is None:
                self.store.save_link(_changed(link, "each"), replaces=link)
        for _ in range(LAST_LOOKS):
            self._until(self.clock.now() + timedelta(hours=13))
            self._decide()
            self._look()

    # the account

    def _account(self, weeks: int) -> Account:
        notices = {notice.transition_id: notice for notice in self.store.notices()}
        assert sorted(notices) == sorted(transition.id for transition in self.store.transitions())
        copies = Counter(
            name for mail in self.provider.accepted for name in mail.transition_ids or (mail.transition_id,)
        )
        for notice in notices.values():
            self._check_end(notice, copies[notice.transition_id])
        for link_id in self.links:
            self._check_owner_knows(self._link(link_id), [n for n in notices.values() if n.link_id == link_id])
        return Account(
            weeks=weeks,
            ends=Counter(notice.status.value for notice in notices.values()),
            mails=len(self.provider.accepted),
            digests=sum(bool(mail.transition_ids) for mail in self.provider.accepted),
            duplicates=sum(count - 1 for count in copies.values() if count > 1),
            crashes=self.crashes,
            suspect_runs=self.suspect_runs,
        )

    def _check_end(self, notice: Notice, copies: int) -> None:
        """Delivered, settled as not to be told, or listed for a person; what came twice is admitted."""
        name, status = notice.transition_id, notice.status
        assert status in _ENDS, f"{name} is {status.value}"
        if status is NoticeStatus.SENT:
            assert copies >= 1, f"{name} is sent, and nobody accepted it"
        if status in (NoticeStatus.MUTED, NoticeStatus.DISCARDED):
            in_doubt = is_possible_duplicate(notice)
            assert copies == 0 or in_doubt, f"{name} is {status.value} but was told"
        if copies > 1:
            assert copies - 1 <= self.provider.admitted[name], f"{name} came {copies} times without a word of warning"
            assert is_possible_duplicate(notice), f"{name} came {copies} times, and its record does not admit it"
        assert copies <= notice.attempts, f"{name} came {copies} times in {notice.attempts} attempts"

    def _check_owner_knows(self, link: Link, notices: list[Notice]) -> None:
        """In the end an owner knows how a link is, unless a refusal, a discarded run or a doubt stands in between."""
        ordered = sorted(notices, key=version_of)
        excused = {NoticeStatus.DISCARDED, NoticeStatus.FAILED, NoticeStatus.UNKNOWN}
        if not ordered or ordered[-1].to_state is not link.state or any(n.status in excused for n in ordered):
            return
        assert told_state(ordered) is link.state, f"{link.id} is {link.state.value}, and its owner was told otherwise"
        heard = [notice for notice in ordered if notice.status is NoticeStatus.SENT or is_possible_duplicate(notice)]
        assert all(n.to_state is LinkState.BROKEN for n in heard[:1]), f"{link.id}: a recovery was announced alone"


_ENDS = frozenset(
    {NoticeStatus.SENT, NoticeStatus.MUTED, NoticeStatus.DISCARDED, NoticeStatus.FAILED, NoticeStatus.UNKNOWN}
)


def _changed(link: Link, owner: str | None) -> Link:
    return replace(link, owner=owner)


def simulate_delivery(seed: int, weeks: int) -> Account:
    """So many weeks of one seed. Raises AssertionError naming the seed."""
    return Town(seed).live(weeks)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m linkwatch_pipeline_tests.simulation.delivery")
    parser.add_argument("seed", metavar="SEED", type=whole_number(0, 10**12))
    parser.add_argument("weeks", metavar="WEEKS", type=whole_number(1, 10_000))
    given = parser.parse_args()
    print(simulate_delivery(given.seed, given.weeks))


if __name__ == "__main__":
    main()
