"""Sleeps that somebody may end, and what is left of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from linkwatch_pipeline.use_cases.sleeping import sleep_until_changed
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual

LONGEST = timedelta(seconds=8)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(MONDAY)


@pytest.mark.parametrize(("set_after", "slept"), [(2, timedelta(seconds=2)), (20, LONGEST)])
def test_it_lasts_until_the_event_is_set_but_not_longer_than_said(
    clock: VirtualClock, set_after: int, slept: timedelta
) -> None:
    async def scene() -> timedelta:
        changed = asyncio.Event()
        asyncio.get_running_loop().create_task(_later(changed, timedelta(seconds=set_after)))
        await sleep_until_changed(clock, LONGEST, changed)
        return clock.now() - MONDAY

    async def _later(changed: asyncio.Event, delay: timedelta) -> None:
        await clock.sleep(delay)
        changed.set()

    assert run_virtual(scene(), clock) == slept


def test_it_leaves_no_task_behind(clock: VirtualClock) -> None:
    async def scene() -> None:
        await sleep_until_changed(clock, LONGEST, asyncio.Event())
        assert len(asyncio.all_tasks()) == 1

    run_virtual(scene(), clock)


def test_cancelled_it_leaves_no_task_behind(clock: VirtualClock) -> None:
    async def scene() -> None:
        sleeper = asyncio.create_task(sleep_until_changed(clock, LONGEST, asyncio.Event()))
        await clock.sleep(timedelta(seconds=1))
        sleeper.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeper
        assert len(asyncio.all_tasks()) == 1

    run_virtual(scene(), clock)


@pytest.mark.parametrize("steps", range(8))
def test_to_be_cancelled_is_never_lost_at_whichever_step_it_comes(clock: VirtualClock, steps: int) -> None:
    async def scene() -> bool:
        changed = asyncio.Event()

        async def work_on() -> None:
            await sleep_until_changed(clock, LONGEST, changed)
            await clock.sleep(timedelta(days=1))

        working = asyncio.create_task(work_on())
        await clock.sleep(timedelta(seconds=1))
        changed.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait({working})
        return working.cancelled()

    assert run_virtual(scene(), clock)
