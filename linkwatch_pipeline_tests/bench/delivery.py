"""How long a notice waits: from the moment at which its run closed until a provider accepted its mail.

In virtual time, with the real delivery on a real store. The doors are the sensor (a tick every minute, then a Dagster
run that has to start) and the Lambda schedule (every minute). Each mail takes its time, one after the other, and one in
a hundred is refused for now, which costs a minute. Measured from the close of the run and not from the release, which
the next tick makes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.deliver import due_notices, prepare_delivery
from linkwatch_pipeline_tests.bench.result import Result
from linkwatch_pipeline_tests.builders import MONDAY, a_run
from linkwatch_pipeline_tests.use_cases.office import Office, Provider
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

PROMISE_SECONDS = 300.0
MINUTE = timedelta(minutes=1)
REFUSED = 0.01


@dataclass(frozen=True)
class Door:
    """Who delivers: how long after each minute it begins, and how long one mail takes (seconds, from and to)."""

    name: str
    begins: tuple[float, float]
    mail: tuple[float, float]


SENSOR = Door("sensor and SMTP", begins=(3.0, 12.0), mail=(0.2, 1.0))
LAMBDA = Door("Lambda schedule and SES", begins=(0.1, 3.0), mail=(0.05, 0.3))


@dataclass
class SlowProvider(Provider):
    """Accepts, but takes its time, and refuses some for now."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    takes: tuple[float, float] = (0.0, 0.0)

    def send(self, mail: Mail) -> str:
        self.clock.advance(timedelta(seconds=self.chance.uniform(*self.takes)))
        if self.chance.random() < REFUSED:
            raise DeliveryError("busy", DeliveryFailure.NOT_ACCEPTED)
        return super().send(mail)


def release_to_accepted(weeks: int = 20) -> Iterable[Result]:
    """The 99th percentile for each door, by how many links of a week change."""
    for door in (SENSOR, LAMBDA):
        for changes, delivery in ((120, Delivery.EACH), (300, Delivery.EACH), (300, Delivery.DIGEST)):
            waits = sorted(waits_of(door, changes, delivery, weeks=weeks))
            p50, p99 = (waits[int(len(waits) * share)] for share in (0.5, 0.99))
            yield Result(
                f"{door.name}, {changes} changes a week, {delivery.value}",
                p99,
                "s",
                PROMISE_SECONDS,
                f"median {p50:.0f} s, longest {waits[-1]:.0f} s, of {len(waits)} notices",
            )


def waits_of(door: Door, changes: int, delivery: Delivery, *, weeks: int, seed: int = 1) -> list[float]:
    """Seconds from the close of the run to acceptance, of all notices of so many weeks."""
    chance, clock = random.Random(seed), VirtualClock(MONDAY)
    store = SqliteStore.open(Path(":memory:"))
    office = Office(store, clock=clock, provider=SlowProvider(clock=clock, chance=chance, takes=door.mail))
    office.employ(delivery=delivery)
    names = [f"page-{number}" for number in range(changes)]
    office.watch(**{name: f"https://docs.example.com/{name}" for name in names})
    try:
        for week in range(weeks):
            _play_week(office, week, names, door, chance)
        closed = {run.run_id: run.closed_at or run.started_at for run in store.runs()}
        told = [(closed[n.run_id], n.sent_at) for n in store.notices() if n.run_id is not None]
        return [(sent_at - closed_at).total_seconds() for closed_at, sent_at in told if sent_at is not None]
    finally:
        store.close()


def _play_week(office: Office, week: int, names: list[str], door: Door, chance: random.Random) -> None:
    """Every link changes in a run that closes at some moment; then the door opens every minute until all is told."""
    monday = MONDAY + week * WEEK
    office.clock.advance(monday + timedelta(seconds=chance.uniform(300, 1700)) - office.clock.now())
    office.run(dict.fromkeys(names, 200 if week % 2 else 404), run=a_run(monday))
    tick = office.clock.now() + timedelta(seconds=chance.uniform(0, 60))
    while any(True for _ in office.store.notices(unsettled_only=True)):
        office.clock.advance(max(tick - office.clock.now(), timedelta(0)))
        tick += MINUTE
        prepare_delivery(office.store, office.breaker, now=office.clock.now(), damaged=Damage())
        if due_notices(office.store, now=office.clock.now()):
            office.clock.advance(timedelta(seconds=chance.uniform(*door.begins)))
            office.deliver()
