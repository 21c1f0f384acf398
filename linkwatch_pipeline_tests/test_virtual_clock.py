"""The virtual clock is a tool of many tests, so it is tested itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from linkwatch_pipeline.ports import Clock
from linkwatch_pipeline_tests import virtual_clock
from linkwatch_pipeline_tests.virtual_clock import Stuck, VirtualClock, run_virtual

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)


def test_a_year_of_waiting_takes_no_time() -> None:
    clock: Clock = VirtualClock(START)

    async def wait() -> str:
        await clock.sleep(timedelta(days=365))
        return "done"

    assert isinstance(clock, VirtualClock)
    assert run_virtual(wait(), clock) == "done"
    assert clock.now() == START + timedelta(days=365)


def test_tasks_wake_in_the_order_of_their_times_and_exactly_then() -> None:
    clock = VirtualClock(START)
    woken: list[tuple[str, timedelta]] = []

    async def sleeper(name: str, naps: list[float]) -> None:
        for nap in naps:
            await clock.sleep(timedelta(seconds=nap))
            woken.append((name, clock.now() - START))

    async def story() -> None:
        await asyncio.gather(sleeper("a", [0.1] * 3), sleeper("b", [0.25, 1_000_000]))

    run_virtual(story(), clock)
    assert woken == [
        ("a", timedelta(seconds=0.1)),
        ("a", timedelta(seconds=0.2)),
        ("b", timedelta(seconds=0.25)),
        ("a", timedelta(seconds=0.3)),
        ("b", timedelta(seconds=1_000_000.25)),
    ]


def test_asyncio_timeouts_are_virtual_too() -> None:
    clock = VirtualClock(START)

    async def story() -> None:
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run_virtual(story(), clock)
    assert clock.now() == START + timedelta(seconds=30)


def test_no_time_passes_while_a_task_works() -> None:
    clock = VirtualClock(START)

    async def busy() -> None:
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert clock.now() == START

    async def story() -> None:
        await asyncio.gather(busy(), asyncio.sleep(60))

    run_virtual(story(), clock)
    assert clock.now() == START + timedelta(seconds=60)


def test_a_deadlock_is_reported_instead_of_hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_clock, "PATIENCE_SECONDS", 0.02)

    async def story() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run_virtual(story(), VirtualClock(START))


def test_it_works_without_a_loop_and_on_an_ordinary_one() -> None:
    clock = VirtualClock(START)
    clock.advance(timedelta(hours=1))
    asyncio.run(clock.sleep(timedelta(hours=1)))
    assert clock.now() == START + timedelta(hours=2)
    assert clock.monotonic() == 7_200.0
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(timedelta(seconds=-1))
