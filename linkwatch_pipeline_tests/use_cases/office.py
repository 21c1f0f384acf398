"""A store, a clock, a mail provider whose answers a test writes down, and short ways to have links break in runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import Run, RunState, count_chains
from linkwatch_pipeline.ports import Mail, Store
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation, dispatched
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

SENDER = "linkwatch@example.com"


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Provider:
    """A mail provider whose answers a test writes down beforehand; without one it accepts."""

    answers: list[BaseException] = field(default_factory=list)
    accepted: list[Mail] = field(default_factory=list)
    before_answering: Callable[[], object] = lambda: None

    def send(self, mail: Mail) -> str:
        self.before_answering()
        answer = self.answers.pop(0) if self.answers else None
        lost = isinstance(answer, DeliveryError) and answer.kind is DeliveryFailure.UNKNOWN
        if answer is None or lost:
            self.accepted.append(mail)
        if answer is not None:
            raise answer
        return f"provider-{len(self.accepted)}"

    @property
    def told(self) -> list[str]:
        """The transitions that were accepted, in order."""
        return [name for mail in self.accepted for name in mail.transition_ids or (mail.transition_id,)]


@dataclass
class Office:
    """A store with a clock and a provider, an hour after MONDAY."""

    store: Store
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(MONDAY + timedelta(hours=1)))
    provider: Provider = field(default_factory=Provider)
    breaker: BreakerRules = field(default_factory=BreakerRules)

    def deliver(
        self,
        *,
        claimant: str = "sender-1",
        limit: int | None = None,
        life: timedelta | None = None,
        refused_too: bool = False,
    ) -> DeliveryReport:
        return deliver_notices(
            self.store,
            self.provider,
            clock=self.clock,
            sender=SENDER,
            claimant=claimant,
            limit=limit,
            life=life,
            breaker=self.breaker,
            refused_too=refused_too,
        )

    def employ(self, team: str = "docs-team", *, delivery: Delivery = Delivery.EACH) -> None:
        self.store.put_owner(Owner(team=team, address=f"{team}@example.com", delivery=delivery))

    def break_link(self, link_id: str, **changes: Any) -> str:
        """A new link that breaks now, in a check by hand; the transition's id."""
        link = a_link(link_id, **changes)
        self.store.save_link(link, replaces=None)
        return self.see(link_id, 404)

    def see(self, link_id: str, status: int) -> str:
        """A check by hand that changes a link; the transition's id."""
        link, now = self.store.get_link(link_id), self.clock.now()
        assert link is not None
        look = an_observation(link, status, sequence=link.highest_sequence + 1, started_at=now, observed_at=now)
        recorded = self.store.record(look, default_confirm=1, now=now)
        assert recorded.transition is not None
        return recorded.transition.id

    def watch(self, **urls: str) -> None:
        """Links by id, of the docs team."""
        self.watch_since(MONDAY - timedelta(days=1), **urls)

    def watch_since(self, moment: datetime, **urls: str) -> None:
        """The same, registered at some moment."""
        for link_id, url in urls.items():
            self.store.save_link(a_link(link_id, url, active_since=moment), replaces=None)

    def run(self, statuses: Mapping[str, int | None], *, run: Run | None = None, close: bool = True) -> str:
        """A run (MONDAY's, if None) over these links, each with its answer, observed now; its id."""
        links = [link for link in self.store.links() if link.id in statuses]
        run = run if run is not None else a_run()
        for job in dispatched(self.store, links, run=run):
            link, now = self.store.get_link(job.link_id), self.clock.now()
            assert link is not None
            look = an_observation(link, statuses[job.link_id], job=job, started_at=now, observed_at=now)
            self.store.record(look, default_confirm=1, now=now)
        if close:
            self.close(run.run_id)
        return run.run_id

    def close(self, run_id: str) -> None:
        totals = count_chains(self.store.chains(run_id))
        assert self.store.close_run(run_id, totals=totals, at=self.clock.now()).state is RunState.CLOSED

    def notice(self, transition_id: str = "guide:1") -> Notice:
        notice = self.store.get_notice(transition_id)
        assert notice is not None
        return notice

    def statuses(self) -> Mapping[str, NoticeStatus]:
        return {notice.transition_id: notice.status for notice in self.store.notices()}

    def set_aside(self, transition_id: str, status: NoticeStatus, **fields: Any) -> None:
        """Bring a notice into a state in which somebody left it."""
        notice = self.notice(transition_id)
        left = replace(notice, status=status, release_at=notice.release_at or self.clock.now(), **fields)
        assert self.store.update_notice(left, replaces=notice)


def refusal(kind: DeliveryFailure) -> DeliveryError:
    return DeliveryError("the provider said no", kind)
