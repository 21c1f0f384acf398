"""Weeks with the functions as released while calls to AWS fail: nothing lost, nothing doubled, and the run ends.

What that means is asserted of each week that is played (`faulty_week`). The suite plays some; the campaign each fault
of each call, and pairs of faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from random import Random

import pytest

from linkwatch_pipeline_tests.cloud.calls import Call, Fault, Plan
from linkwatch_pipeline_tests.cloud.faulty_week import Played, Weeks, weeks_on
from linkwatch_pipeline_tests.cloud.played_week import SITES
from linkwatch_pipeline_tests.cloud.timed_cloud import TimedCloud
from linkwatch_pipeline_tests.world import WorldProcess
from linkwatch_pipeline_tests.world.ses_server import SesServer

FAULTS = [fault for fault in Fault if fault is not Fault.CONFLICT]
SOME = 2  # calls of a week that fail in the suite, for each fault
PARTS = 8  # of the campaign, for each fault: what is played between two lines of pytest's
PAIRS = 50  # of calls, in each of PARTS
SEED = 45
OUTAGES = (Fault.THROTTLED, Fault.SERVER_ERROR, Fault.CUT_BEFORE, Fault.CUT_AFTER)


@pytest.fixture(scope="module")
def weeks(timed_cloud: TimedCloud, ses_server: SesServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weeks]:
    with WorldProcess(SITES, tmp_path_factory.mktemp("world")) as world:
        with weeks_on(timed_cloud, world, ses_server) as opened:
            yield opened


@pytest.fixture(scope="module")
def healthy(weeks: Weeks) -> Played:
    """A week in which nothing fails."""
    return weeks.play()


def at(faults: Mapping[int, Fault]) -> Plan:
    return lambda call: faults.get(call.number)


def first_of_each(fault: Fault) -> Plan:
    """The first call of every operation fails."""
    failed: set[str] = set()

    def plan(call: Call) -> Fault | None:
        if call.operation in failed:
            return None
        failed.add(call.operation)
        return fault

    return plan


def outage(weeks: Weeks, fault: Fault, begins: int, lasts: timedelta) -> Plan:
    """From one call on every call fails, to whatever service, until so much time has passed."""
    ends: list[datetime] = []

    def plan(call: Call) -> Fault | None:
        if call.number < begins:
            return None
        if not ends:
            ends.append(weeks.now() + lasts)
        return fault if weeks.now() < ends[0] else None

    return plan


def play_each(weeks: Weeks, fault: Fault, numbers: range | list[int]) -> None:
    for number in numbers:
        played = weeks.play(at({number: fault}))
        assert played.failed == [number]


def test_a_week_makes_the_same_calls_whenever_it_is_played(weeks: Weeks, healthy: Played) -> None:
    again = weeks.play()
    assert again.operations == healthy.operations
    assert {"TransactWriteItems", "SendMessageBatch", "ReceiveMessage", "outbound-emails", "PutMetricData"} <= set(
        healthy.operations
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_week_comes_to_its_end_though_the_first_of_each_call_fails(weeks: Weeks, fault: Fault) -> None:
    played = weeks.play(first_of_each(fault))
    assert [fate.fault for fate in played.mails] == [fault, None]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_week_comes_to_its_end_though_one_of_its_calls_fails(weeks: Weeks, healthy: Played, fault: Fault) -> None:
    play_each(weeks, fault, Random(f"{SEED}{fault}").sample(range(len(healthy.fates)), SOME))


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("SendMessageBatch", Fault.CUT_BEFORE),
        ("TransactWriteItems", Fault.CUT_AFTER),
        ("outbound-emails", Fault.CUT_AFTER),
    ],
)
def test_a_week_comes_to_its_end_though_an_outage_begins_with_a_call(
    weeks: Weeks, healthy: Played, operation: str, fault: Fault
) -> None:
    """What could not be sent, or whose answer was lost, is seen to some minutes later."""
    weeks.play(outage(weeks, fault, healthy.operations.index(operation), timedelta(minutes=1)))


@pytest.mark.parametrize("operation", ["SendMessageBatch", "TransactWriteItems", "outbound-emails"])
def test_a_week_comes_to_its_end_though_a_function_dies(weeks: Weeks, healthy: Played, operation: str) -> None:
    """After a call, before its next one."""
    played = weeks.play(dies_before=healthy.operations.index(operation) + 1)
    assert played.died_before is not None


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_week_comes_to_its_end_whichever_of_its_calls_fails(
    weeks: Weeks, healthy: Played, fault: Fault, part: int
) -> None:
    play_each(weeks, fault, range(part, len(healthy.fates), PARTS))


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_a_week_comes_to_its_end_whichever_two_of_its_calls_fail(weeks: Weeks, healthy: Played, part: int) -> None:
    """The second is often one of those that the first one leads to."""
    chance = Random(f"{SEED}{part}")
    for _ in range(PAIRS):
        first = chance.randrange(len(healthy.fates))
        second = first + 1 + min(int(chance.expovariate(1 / 20)), len(healthy.fates))
        one, other = chance.choice(FAULTS), chance.choice(FAULTS)
        weeks.play(at({first: one, second: other}))


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_a_week_comes_to_its_end_wherever_a_function_dies(weeks: Weeks, healthy: Played, part: int) -> None:
    for number in range(part, len(healthy.fates), PARTS):
        assert weeks.play(dies_before=number).died_before == number


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("fault", OUTAGES)
def test_a_week_comes_to_its_end_whenever_an_outage_begins(
    weeks: Weeks, healthy: Played, fault: Fault, part: int
) -> None:
    """Of some seconds, which calls wait for, up to some minutes, which they do not."""
    chance = Random(f"{SEED}{fault}{part}")
    for number in range(part, len(healthy.fates), PARTS):
        weeks.play(outage(weeks, fault, number, timedelta(seconds=chance.choice((5, 20, 60, 300)))))
