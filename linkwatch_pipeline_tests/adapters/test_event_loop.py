"""Coroutines under somebody else's interrupt handlers: stopped at any step, and the interrupt always arrives."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from types import FrameType

import pytest

from linkwatch_pipeline.adapters.event_loop import CoroutineRunner

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


class Interrupted(BaseException):
    """As Dagster's: no KeyboardInterrupt, so asyncio would take it for a fault of a callback."""


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Handlers that raise at once; what they heard."""
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    numbers = list[int]()

    def handle(number: int, _: FrameType | None) -> None:
        numbers.append(number)
        raise Interrupted

    for number in former:
        signal.signal(number, handle)
    yield numbers
    for number, handler in former.items():
        signal.signal(number, handler)


class Work:
    """Sleeps for ever, after so many steps; tidies up in two steps when it is cancelled."""

    def __init__(self) -> None:
        self.tidied = False

    async def for_ever(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.tidied = True


def test_without_an_interrupt_it_is_asyncio_run(heard: list[int]) -> None:
    async def seven() -> int:
        return 7

    async def fails() -> None:
        raise ValueError("as it is")

    before = signal.getsignal(signal.SIGINT)
    assert CoroutineRunner().run(seven()) == 7
    with pytest.raises(ValueError, match="as it is"):
        CoroutineRunner().run(fails())
    assert signal.getsignal(signal.SIGINT) is before
    assert heard == []


@BOTH
def test_an_interrupt_in_a_callback_of_the_loop_ends_it_tidily(heard: list[int], number: signal.Signals) -> None:
    work = Work()

    async def main() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
        await work.for_ever()

    with pytest.raises(Interrupted):
        CoroutineRunner().run(main())
    assert (heard, work.tidied) == ([number], True)


@BOTH
def test_an_interrupt_in_a_step_of_another_task_ends_it_tidily(heard: list[int], number: signal.Signals) -> None:
    work = Work()

    async def unlucky() -> None:
        signal.raise_signal(number)

    async def main() -> None:
        task = asyncio.create_task(unlucky())
        await work.for_ever()
        await task

    with pytest.raises(Interrupted):
        CoroutineRunner().run(main())
    assert (heard, work.tidied) == ([number], True)


def test_an_interrupt_that_comes_too_late_to_stop_anything_arrives_all_the_same(heard: list[int]) -> None:
    async def main() -> int:
        signal.raise_signal(signal.SIGINT)
        return 7

    with pytest.raises(Interrupted):
        CoroutineRunner().run(main())
    assert heard == [signal.SIGINT]


def test_an_interrupt_arrives_in_place_of_what_stopping_led_to(heard: list[int]) -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cannot tidy up")

    with pytest.raises(Interrupted) as told:
        CoroutineRunner().run(main())
    assert isinstance(told.value.__context__, ValueError)


def test_a_second_interrupt_does_not_wait(heard: list[int]) -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()

    with pytest.raises(Interrupted):
        CoroutineRunner().run(main())


def test_a_handler_that_only_takes_note_still_ends_the_work() -> None:
    former = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with pytest.raises(KeyboardInterrupt):
            CoroutineRunner().run(_interrupted())
    finally:
        signal.signal(signal.SIGINT, former)


async def _interrupted() -> None:
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()


def test_another_thread_stops_it_and_nothing_runs_any_more() -> None:
    runner, work, raised = CoroutineRunner(), Work(), list[type[BaseException]]()
    begun = threading.Event()

    async def main() -> None:
        begun.set()
        await work.for_ever()

    def observe() -> None:
        for coroutine in (main(), Work().for_ever()):
            try:
                runner.run(coroutine)
            except BaseException as error:  # all that comes
                raised.append(type(error))

    thread = threading.Thread(target=observe)
    thread.start()
    assert begun.wait(20)
    runner.stop()
    thread.join(20)
    assert (raised, work.tidied) == ([KeyboardInterrupt] * 2, True)


def test_whoever_waits_between_two_coroutines_hears_of_it_at_once() -> None:
    runner = CoroutineRunner()
    runner.wait(timedelta(0))
    runner.raise_if_stopped()
    threading.Thread(target=runner.stop).start()
    with pytest.raises(KeyboardInterrupt):
        runner.wait(timedelta(days=1))
    with pytest.raises(KeyboardInterrupt):
        runner.raise_if_stopped()


def test_what_the_system_does_by_default_stays(heard: list[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    async def main() -> object:
        return signal.getsignal(signal.SIGTERM)

    assert CoroutineRunner().run(main()) is signal.SIG_DFL


def test_a_thread_has_no_handlers_and_needs_none(heard: list[int]) -> None:
    results = list[int]()

    async def seven() -> int:
        return 7

    thread = threading.Thread(target=lambda: results.append(CoroutineRunner().run(seven())))
    thread.start()
    thread.join()
    assert results == [7]
