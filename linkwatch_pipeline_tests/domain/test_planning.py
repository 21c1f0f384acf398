"""The least time of a run, the days it needs, and when its hosts best begin."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.planning import (
    Pace,
    agreed_chains,
    bound,
    needed_allowance,
    plan_over_days,
    planned_starts,
    shape,
)

PACE = Pace(concurrency=20, mean_service=timedelta(seconds=2), cooldown=timedelta(seconds=1))
WINDOW = timedelta(hours=6)
HOSTS = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(1, 9000), min_size=1, max_size=30)


def test_fifty_thousand_links_on_one_host_take_41_7_hours_whatever_the_concurrency() -> None:
    least = bound(dict(shape(links=600_000, hosts=100_000, busiest=50_000)), PACE)
    assert least.busiest == timedelta(seconds=50_000 * 3 - 1)
    assert least.makespan == least.busiest
    assert least.shared == timedelta(seconds=60_000)


def test_they_fit_into_seven_days_or_seven_visits_at_once() -> None:
    plan = plan_over_days({"big": 50_000}, PACE, window=WINDOW)
    assert plan is not None
    assert (plan.days, plan.busiest_a_day) == (7, 7143)
    assert needed_allowance(50_000, PACE, window=WINDOW) == 7


@given(HOSTS)
def test_every_day_of_a_plan_holds_and_no_link_is_left_out(hosts: dict[str, int]) -> None:
    plan = plan_over_days(hosts, PACE, window=WINDOW)
    assert plan is not None
    days: list[dict[str, int]] = [{} for _ in range(plan.days)]
    in_order = (host for host in sorted(hosts) for _ in range(hosts[host]))
    for place, host in enumerate(in_order):
        day = days[plan.due_day(place)]
        day[host] = day.get(host, 0) + 1
    assert sum(sum(day.values()) for day in days) == sum(hosts.values())
    assert max(sum(day.values()) for day in days) == plan.links_a_day
    assert max(max(day.values(), default=0) for day in days) == plan.busiest_a_day
    assert all(bound(day, PACE).makespan <= WINDOW for day in days if day)


def test_a_window_shorter_than_one_visit_holds_no_plan() -> None:
    assert plan_over_days({"a": 1}, PACE, window=timedelta(seconds=1)) is None
    assert needed_allowance(1, PACE, window=timedelta(seconds=1)) is None


@given(HOSTS, st.integers(1, 12))
def test_an_allowance_divides_only_the_busiest_host_and_loses_no_link(hosts: dict[str, int], allowance: int) -> None:
    chains = agreed_chains(hosts, allowance)
    assert sum(chains.values()) == sum(hosts.values())
    assert len(chains) <= len(hosts) + allowance - 1
    assert bound(chains, PACE).makespan <= bound(hosts, PACE).makespan


def test_the_busiest_host_is_the_one_that_takes_longest_whatever_the_others_allow() -> None:
    least = bound({"big": 30, "big#2": 28, "big#3": 32, "long": 40}, PACE)
    assert (least.busiest_host, least.busiest_links, least.busiest_chains) == ("long", 40, 1)
    assert (least.links, least.hosts, least.makespan) == (130, 2, timedelta(seconds=119))
    least = bound({"big": 30, "big#2": 41, "long": 40}, PACE)
    assert (least.busiest_host, least.busiest_links, least.busiest_chains) == ("big", 71, 2)


def test_days_are_planned_by_chains_and_told_by_hosts() -> None:
    plan = plan_over_days({"big": 7_200, "big#2": 7_200}, PACE, window=WINDOW)
    assert plan is not None
    assert (plan.days, plan.links_a_day, plan.busiest_a_day) == (1, 14_400, 14_400)


@given(HOSTS)
def test_every_chain_has_a_planned_start_in_whole_seconds_and_long_ones_begin_at_once(hosts: dict[str, int]) -> None:
    starts, least = planned_starts(hosts, PACE), bound(hosts, PACE).makespan
    assert starts.keys() == hosts.keys()
    assert all(start >= timedelta(0) and start.microseconds == 0 for start in starts.values())
    assert all(starts[host] == timedelta(0) for host in hosts if PACE.chain_time(hosts[host]) > least / 2)
    assert all(start <= least for start in starts.values())


@pytest.mark.parametrize(("links", "hosts", "busiest"), [(10, 11, 1), (10, 2, 4), (10, 1, 9), (10, 0, 10), (5, 2, 6)])
def test_hosts_that_cannot_be_are_refused(links: int, hosts: int, busiest: int) -> None:
    with pytest.raises(ValueError):
        shape(links=links, hosts=hosts, busiest=busiest)


def test_nothing_to_visit_has_no_bound() -> None:
    with pytest.raises(ValueError):
        bound({}, PACE)
    assert planned_starts({}, PACE) == {}
