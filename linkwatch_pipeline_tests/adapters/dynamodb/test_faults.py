"""Every method of the DynamoDB store, with every call it makes failing in every way: nothing lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore
from linkwatch_pipeline.adapters.store.dynamodb_table import chunks
from linkwatch_pipeline.domain.errors import StoreUnavailable
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.links import AllocationSlot, Owner
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus, RunCounts
from linkwatch_pipeline.ports import ExportedWeek, Store
from linkwatch_pipeline_tests.builders import (
    MONDAY,
    RUN_ID,
    a_chain,
    a_job,
    a_link,
    a_run,
    after,
    an_observation,
    dispatched,
    linked,
)
from linkwatch_pipeline_tests.cloud.calls import Call, Fault
from linkwatch_pipeline_tests.cloud.fault_proxy import FaultProxy, fault_proxy, hears_silence
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import PATIENT, StandingClock, make_table, store_on
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

HOST = "docs.example.com"
LINKS = [a_link(name, f"https://{HOST}/{name}") for name in ("a", "b", "c")]
NEXT_WEEK = a_run(after(days=7))
NEW = [a_link(f"new-{n:03}", f"https://h{n}.example.com/") for n in range(60)]


def a_week_has_begun(store: Store) -> None:
    """Three links on one host; the first is observed and broken, its notice is claimed by `me`; a visitor is in."""
    store.save_registry(
        owners=[Owner(team="docs-team", address="docs@example.com")], links=[(link, None) for link in LINKS]
    )
    jobs = dispatched(store, LINKS)
    store.record(an_observation(LINKS[0], 404, job=jobs[0]), default_confirm=1, now=after(minutes=1))
    store.claim_notice("a:1", by="me", now=after(minutes=2))
    store.acquire_host(HOST, token="visit", job_id=jobs[1].job_id, now=MONDAY, skew=timedelta(0))
    store.create_run(NEXT_WEEK)
    store.create_run(a_run(after(days=-7)))
    store.close_run(a_run(after(days=-7)).run_id, totals=RunCounts(expected=0, by_end={}), at=MONDAY)


def job(store: Store, link_id: str = "b") -> Any:
    return store.get_job(RUN_ID, link_id)


def link(store: Store, link_id: str = "b") -> Any:
    return store.get_link(link_id)


def chain(store: Store) -> Any:
    return store.get_chain(RUN_ID, HOST)


def next_jobs() -> list[Any]:
    return linked([a_job(one, run_id=NEXT_WEEK.run_id, sequence=1) for one in LINKS])


def leave(store: Store) -> object:
    departure = Departure(at=after(seconds=9), answered=True)
    return store.release_host(HOST, token="visit", departure=departure, cooldown=timedelta(seconds=1), chance=Random(1))


def save_as_sent(store: Store) -> bool:
    notice = store.get_notice("a:1")
    assert notice is not None
    return store.save_notice(replace(notice, status=NoticeStatus.SENT, attempts=1), claimed_by="me")


def hear_of_delivery(store: Store) -> bool:
    notice = store.get_notice("a:1")
    assert notice is not None
    return store.update_notice(replace(notice, status=NoticeStatus.DELIVERED), replaces=notice)


ACTIONS: dict[str, Callable[[Store], object]] = {
    "save a new link": lambda s: s.save_link(NEW[0], replaces=None),
    "update a link": lambda s: s.save_link(replace(link(s), marker="x", config_version=2), replaces=link(s)),
    "move a link": lambda s: s.save_link(
        replace(link(s), url="https://x.example.com/", host="x.example.com", owner="sre"), replaces=link(s)
    ),
    "save many links": lambda s: s.save_registry(
        owners=[Owner(team="sre", address="s@example.com")],
        links=[*((one, None) for one in NEW[:30]), (replace(link(s), owner="sre"), link(s))],
    ),
    "put an owner": lambda s: s.put_owner(Owner(team="docs-team", address="new@example.com")),
    "record, state changed": lambda s: s.record(
        an_observation(LINKS[1], 404, job=job(s)), default_confirm=1, now=after(minutes=3)
    ),
    "record, state kept": lambda s: s.record(
        an_observation(LINKS[1], 503, job=job(s)), default_confirm=1, now=after(minutes=3)
    ),
    "record by hand": lambda s: s.record(an_observation(LINKS[2], 200, sequence=7), default_confirm=1, now=MONDAY),
    "create a run": lambda s: s.create_run(a_run(after(days=14))),
    "allocate": lambda s: s.allocate(LINKS, AllocationSlot.WEEKLY, NEXT_WEEK.run_id),
    "put jobs": lambda s: s.put_jobs(next_jobs()),
    "put a chain": lambda s: s.put_chain(a_chain(next_jobs())),
    "save progress": lambda s: s.save_dispatch_progress(NEXT_WEEK.run_id, cursor="x", dispatched=3),
    "finish dispatch": lambda s: s.finish_dispatch(NEXT_WEEK.run_id, expected=3, at=after(days=7)),
    "end a job": lambda s: s.end_job(job(s), status=JobStatus.EXPIRED, reason=Reason.STALLED),
    "defer the head": lambda s: s.defer_head(job(s), until=after(hours=1), now=MONDAY),
    "count a deferral": lambda s: s.count_deferral(job(s)),
    "resend the head": lambda s: s.resend_head(s.get_chain(RUN_ID, HOST), now=MONDAY),  # type: ignore[arg-type]
    "claim the start": lambda s: s.claim_start(chain(s), ready_at=after(minutes=9), now=after(minutes=1)),
    "close a run": lambda s: s.close_run(RUN_ID, totals=RunCounts(expected=3, by_end={}), at=after(hours=6)),
    "prune runs": lambda s: s.prune_runs(started_before=MONDAY),
    "enter a host": lambda s: s.acquire_host("new", token="t", job_id="0:a", now=MONDAY, skew=timedelta(0)),
    "take a dead visitor's place": lambda s: s.acquire_host(
        HOST, token="t", job_id="0:a", now=after(hours=1), skew=timedelta(0)
    ),
    "leave a host": leave,
    "void leases": lambda s: s.void_leases(token_prefix="vis", now=MONDAY, cooldown=timedelta(0)),
    "claim a notice": lambda s: s.claim_notice("a:1", by="other", now=after(hours=1)),
    "save a notice": save_as_sent,
    "hear of a delivery": hear_of_delivery,
    "mark a week exported": lambda s: s.mark_exported(
        ExportedWeek(week=MONDAY, rows=1, sha256="0" * 64, exported_at=after(days=7))
    ),
    "prune a week": lambda s: s.prune_observations(week=MONDAY, expect_rows=1),
    "read": lambda s: (list(s.links_by_host()), list(s.jobs(RUN_ID, host=HOST)), list(s.notices(unsettled_only=True))),
}


class Week:
    """The same week in the same table again and again, behind the proxy; what is changed is put back."""

    def __init__(self, proxy: FaultProxy, behind: Cloud) -> None:
        self.proxy = proxy
        self.client = hears_silence(proxy.cloud.client("dynamodb", config=PATIENT))
        self._direct = behind.client("dynamodb")
        self.name = make_table(behind)
        a_week_has_begun(store_on(self._direct, self.name))
        self._begun = self._items()

    def begun(self, **how: Any) -> DynamoStore:
        """A store on the week as it began. Args: how: see `store_on`."""
        now = self._items()
        changes: list[Any] = [{"DeleteRequest": {"Key": _key(now[key])}} for key in now.keys() - self._begun.keys()]
        changes += [{"PutRequest": {"Item": item}} for key, item in self._begun.items() if now.get(key) != item]
        for some in chunks(changes, 25):
            assert not self._direct.batch_write_item(RequestItems={self.name: some})["UnprocessedItems"]
        self.proxy.begin()
        return store_on(self.client, self.name, **how)

    def contents(self) -> dict[tuple[str, str], Any]:
        """All items, but for the names of the writes that they come from."""
        items = self._items()
        return {key: {name: value for name, value in item.items() if name != "w"} for key, item in items.items()}

    def _items(self) -> dict[tuple[str, str], Any]:
        items = self._direct.scan(TableName=self.name, ConsistentRead=True)["Items"]
        return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


def _key(item: dict[str, Any]) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


@pytest.fixture(scope="module")
def week(ministack: Cloud) -> Iterator[Week]:
    with fault_proxy(ministack) as proxy:
        yield Week(proxy, ministack)


def at(number: int, fault: Fault) -> Callable[[Call], Fault | None]:
    return lambda call: fault if call.number == number else None


def from_then_on(number: int, fault: Fault) -> Callable[[Call], Fault | None]:
    return lambda call: fault if call.number >= number else None


def fail_each_call_once(week: Week, name: str, faults: Sequence[Fault]) -> None:
    act = ACTIONS[name]
    store = week.begun()
    answer = act(store)
    calls = len(week.proxy.calls)
    expected = week.contents()
    for fault in faults:
        for number in range(calls):
            store = week.begun()
            week.proxy.begin(at(number, fault))
            assert act(store) == answer, f"call {number} {fault}"
            assert week.contents() == expected, f"call {number} {fault}"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.campaign if name == "save many links" else ()) for name in ACTIONS],
)
def test_a_call_whose_answer_is_lost_once_changes_neither_the_answer_nor_what_is_stored(week: Week, name: str) -> None:
    fail_each_call_once(week, name, [Fault.CUT_AFTER])


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.CUT_AFTER])
@pytest.mark.parametrize("name", ["record, state changed", "take a dead visitor's place"])
def test_any_fault_of_any_call_changes_neither_the_answer_nor_what_is_stored(
    week: Week, name: str, fault: Fault
) -> None:
    fail_each_call_once(week, name, [fault])


@pytest.mark.campaign
@pytest.mark.parametrize("name", ACTIONS)
def test_any_fault_of_any_call_of_any_method_changes_nothing(week: Week, name: str) -> None:
    fail_each_call_once(week, name, list(Fault))


@pytest.mark.parametrize(
    "name",
    [
        "record, state changed",
        pytest.param("save many links", marks=pytest.mark.campaign),
        pytest.param("end a job", marks=pytest.mark.campaign),
        pytest.param("claim a notice", marks=pytest.mark.campaign),
    ],
)
def test_a_store_that_goes_away_leaves_all_of_a_change_or_nothing_and_repeating_it_mends(week: Week, name: str) -> None:
    act = ACTIONS[name]
    begun = seen(week.begun())
    act(store := week.begun())
    calls = len(week.proxy.calls)
    done = seen(store)
    for number in range(calls):
        store = week.begun(budget=timedelta(milliseconds=20))
        week.proxy.begin(from_then_on(number, Fault.CUT_AFTER))
        with suppress(StoreUnavailable):
            act(store)
        week.proxy.begin()
        patient = store_on(week.client, week.name, clock=StandingClock(after(hours=1)))  # its writer is long dead
        left = seen(patient)
        assert left in (begun, done), f"call {number}"
        if left == begun:
            act(patient)
        assert seen(patient) == done, f"call {number}"


def seen(store: Store) -> list[object]:
    return [list(store.links()), list(store.owners()), list(store.observations()), list(store.transitions()),
            list(store.notices()), list(store.jobs(RUN_ID)), list(store.chains(RUN_ID))]  # fmt: skip


def test_who_is_refused_again_and_again_is_told_so_within_the_budget(week: Week) -> None:
    clock = VirtualClock()
    store = week.begun(budget=timedelta(seconds=5), clock=clock, wait=clock.advance)
    week.proxy.begin(lambda call: Fault.THROTTLED)
    with pytest.raises(StoreUnavailable, match="does not serve"):
        store.get_link("a")
    assert len(week.proxy.calls) >= 5
    assert clock.monotonic() <= 5
