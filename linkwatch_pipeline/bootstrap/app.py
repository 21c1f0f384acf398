"""What is done with the parts of one home."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.event_loop import CoroutineRunner
from linkwatch_pipeline.adapters.story_clock import StoryClock
from linkwatch_pipeline.bootstrap.alarms import open_alarm_memory
from linkwatch_pipeline.bootstrap.identity import new_worker
from linkwatch_pipeline.bootstrap.parts import Parts
from linkwatch_pipeline.domain.alarms import after_look
from linkwatch_pipeline.domain.errors import LinkwatchError
from linkwatch_pipeline.domain.health import missing_heartbeat
from linkwatch_pipeline.domain.health_findings import Finding
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.runs import Run, RunCounts
from linkwatch_pipeline.ports import Progress
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import DeliveryReport, deliver_notices, prepare_delivery
from linkwatch_pipeline.use_cases.follow_run import follow_run
from linkwatch_pipeline.use_cases.observe_week import latest_moment, observe_hosts
from linkwatch_pipeline.use_cases.review_week import latest_week
from linkwatch_pipeline.use_cases.settle_doubt import settle_doubts
from linkwatch_pipeline.use_cases.survey_health import Surveyor
from linkwatch_pipeline.use_cases.tell_alarms import Told, tell_alarms
from linkwatch_pipeline.use_cases.watch_health import watch_health


@dataclass(frozen=True, kw_only=True)
class App(Parts):
    """One home at work. Use it as a context manager, so that the store is closed."""

    coroutines: CoroutineRunner = field(default_factory=CoroutineRunner)

    @contextmanager
    def sole_runner(self) -> Iterator[str]:
        """Be the one process that works on runs in this home; yields its worker name.

        The hosts that a dead predecessor was visiting are free again after their cooldown. Raises AlreadyRunning.
        On AWS nobody is the only one, and nothing is held: what keeps workers apart is in the store.
        """
        if self.on_aws:
            yield new_worker("follow")
            return
        from linkwatch_pipeline.adapters.run_lock import hold_run_lock

        def free_hosts(of: str) -> None:
            self.store.void_leases(token_prefix=of, now=self.clock.now(), cooldown=self.cooldown)

        worker = new_worker("run")
        with hold_run_lock(self.home.run_lock, worker=worker, bury=free_hosts):
            yield worker

    def in_week(self, week: datetime) -> App:
        """The same home as it was in a week: a story home's clock shows that week; any other home is as it is.

        It goes on from the latest moment that the store knows of the week, so a resumed week never runs backwards.
        """
        if self.home.fixture is None or not self.home.fixture.story:
            return self
        return self._changed(clock=StoryClock(SystemClock(), latest_moment(self.store, week)))

    def with_progress(self, progress: Progress) -> App:
        """The same parts, telling `progress` what happens in runs."""
        return self._changed(progress=progress)

    def stopped_by(self, coroutines: CoroutineRunner) -> App:
        """The same parts, for somebody who may want to end `observe` in the middle."""
        return self._changed(coroutines=coroutines)

    def _changed(self, **parts: Any) -> App:
        changed = replace(self, **parts)
        changed.__dict__["store"] = self.store  # one connection, closed by whoever opened it
        return changed

    def observe(
        self, run: Run, hosts: Iterable[str] | None, *, worker: str, tell: Callable[[str], None] | None = None
    ) -> None:
        """Return when these hosts (all, if None) have nothing left in the run.

        They are checked in this process; on AWS by whoever takes messages from the shared queue, while this ticks.

        Args:
            worker: as `sole_runner` named this process.
            tell: told how far a run is that others work on; None tells `progress`.
        Raises: KeyboardInterrupt once `coroutines` is stopped.
        """
        self.coroutines.run(self._follow(run, hosts, worker, tell) if self.on_aws else self._work(run, hosts, worker))

    async def _work(self, run: Run, hosts: Iterable[str] | None, worker: str) -> None:
        async with self.checking(worker=worker) as parts:
            await observe_hosts(parts, run, hosts, concurrency=self.settings.concurrency, make_queue=self.make_queue)

    async def _follow(
        self, run: Run, hosts: Iterable[str] | None, worker: str, tell: Callable[[str], None] | None
    ) -> None:
        say, queue = tell or self.progress.note, self.shared_queue
        named = frozenset(hosts) if hosts is not None else None
        async with self.checking(worker=worker) as parts:
            await follow_run(
                parts,
                queue,
                run.run_id,
                named,
                pace=self.pace,
                tell=lambda at, counts: say(_how_far(at, counts)),
                warn=lambda waiting: say(_nobody_works(run, waiting)),
                tell_outage=lambda fault: say(f"{run.run_id}  {outage_words(fault)}"),
            )

    def deliver(self, *, refused_too: bool = False, life: timedelta | None = None) -> DeliveryReport:
        """One attempt for each notice that is due, and for those refused for good if somebody says so.

        Args: life: how long this process goes on; no mail is begun that would outlast it. None: as long as it takes.
        """
        return deliver_notices(
            self.store,
            self.notifier,
            clock=self.clock,
            sender=self.settings.mail_from,
            claimant=new_worker("deliver"),
            breaker=self.breaker,
            life=life,
            refused_too=refused_too,
        )

    def settle_doubts(self, *, arrived: Iterable[str], again: Iterable[str]) -> list[Notice]:
        """Write down what a person knows of mails whose answer was lost (`use_cases.settle_doubt`)."""
        return settle_doubts(self.store, arrived=arrived, again=again, now=self.clock.now())

    def look(self, *, surveyor: Surveyor | None = None, by_hand: bool = False) -> tuple[Finding, ...]:
        """All findings as of now; in a story home as of its last week, since nobody runs the weeks after the story.

        Args:
            surveyor: remembers what is not read every five minutes; None reads everything.
            by_hand: nobody repeats it, so it is no heartbeat: no numbers are published, which alarms look at.
        """
        week = latest_week(self.store, now=self.clock.now())
        app = self.in_week(week) if week is not None else self
        metrics = None if by_hand else app.metrics
        return watch_health(
            app.store, metrics, clock=app.clock, breaker=app.breaker, surveyor=surveyor, queue=app.watched_queue
        )

    def tell(self, findings: Iterable[Finding]) -> Told:
        """Tell on-call what it does not know yet of these findings, and remember that somebody looked."""
        return tell_alarms(self.alarm_memory, self.alarm_destinations, findings, source="health", now=self.clock.now())

    def has_to_tell(self, findings: Iterable[Finding]) -> bool:
        """Whether on-call does not know something of these findings, and nobody who tells has looked lately."""
        now, state = self.clock.now(), self.alarm_memory.read()
        if missing_heartbeat(state.looked_at, now=now) is None:
            return False
        after = after_look(state, findings, source="health", destinations=self.alarm_destinations, now=now)
        return any(after.waiting.values())

    def watch_the_watcher(self) -> tuple[Finding | None, Told]:
        """Whether somebody who tells has looked lately, and tell on-call if not. The store is left alone."""
        now = self.clock.now()
        finding = missing_heartbeat(self.alarm_memory.read().looked_at, now=now)
        findings = [finding] if finding is not None else []
        memory = open_alarm_memory(self.home.watchdog_memory)
        return finding, tell_alarms(memory, self.alarm_destinations, findings, source="watchdog", now=now)

    def prepare_delivery(self) -> None:
        """Rule on the runs whose time has come, release or hold their notices, and lift the mutes that are over."""
        prepare_delivery(self.store, self.breaker, now=self.clock.now(), damaged=Damage())

    def __enter__(self) -> App:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _how_far(run: Run, counts: RunCounts) -> str:
    ends = ", ".join(f"{end} {count}" for end, count in counts.by_end.items())
    return f"{run.run_id}  {counts.terminal}/{counts.expected}  {ends}".rstrip()


def outage_words(fault: LinkwatchError | None) -> str:
    """What a person who follows a run is told of an outage: its cause when it begins, what comes next when it is over.

    Args: fault: None when store and queue serve again.
    """
    if fault is not None:
        return f"waits: {fault} This run does so by itself until they serve again."
    return (
        "goes on: table and queue serve again. What workers put off comes back within two minutes, what got lost is "
        "sent again within four."
    )


def _nobody_works(run: Run, waiting: int) -> str:
    return (
        f"{run.run_id}  no job ended for a while, and {waiting} messages wait in the queue: no worker seems to be at "
        "work. Start 'linkwatch worker', or look at the function check and its mapping. This run goes on waiting."
    )
