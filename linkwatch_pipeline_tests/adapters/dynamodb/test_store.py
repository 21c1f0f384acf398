"""What only the DynamoDB store has to show: pages, partial batches, expiry, days of notices, prices, many workers."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.dynamodb import DynamoStore, make_client
from linkwatch_pipeline.adapters.store.dynamodb_items import damaged_item, key_attributes
from linkwatch_pipeline.adapters.store.dynamodb_retry import Conflict, Patience
from linkwatch_pipeline.domain.errors import (
    ConfigurationError,
    DamagedRecord,
    OutOfTime,
    StaleWrite,
    StoreContended,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_link, a_run, after, an_observation, dispatched
from linkwatch_pipeline_tests.cloud.calls import Call, Fault
from linkwatch_pipeline_tests.cloud.fault_proxy import fault_proxy
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.moto_cloud import moto_storage
from linkwatch_pipeline_tests.cloud.tables import PATIENT, StandingClock, make_table, store_on
from linkwatch_pipeline_tests.cloud.write_units import write_units_per_check
from linkwatch_pipeline_tests.contracts.spoiling import spoil_item
from linkwatch_pipeline_tests.simulation.cluster import simulate


def observed(store: Store, statuses: list[int | None], **fields: Any) -> None:
    store.save_link(a_link(), replaces=None)
    for sequence, status in enumerate(statuses):
        store.record(an_observation(a_link(), status, sequence=sequence, **fields), default_confirm=1, now=MONDAY)


# reading


def test_every_page_of_a_megabyte_is_read(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """On moto, whose pages end as Amazon's do."""
    store = moto_storage(request, tmp_path)()
    observed(store, [200] * 12, page_hints=("x" * 200_000,))
    assert [look.sequence for look in store.observations()] == list(range(12))
    assert store.prune_observations(week=MONDAY, expect_rows=12) == 12


def test_what_a_batch_leaves_undone_is_asked_for_again(client: Any, store: DynamoStore) -> None:
    store.save_registry(links=[(a_link(f"link-{n}"), None) for n in range(9)])
    halved: list[str] = []

    def halve(params: dict[str, Any], **_: Any) -> None:
        ((table, asked),) = params["RequestItems"].items()
        keys = asked["Keys"] if isinstance(asked, dict) else asked
        if len(keys) > 1:
            halved.append(table)
            left = keys[len(keys) // 2 :]
            answers.append({table: {"Keys": left} if isinstance(asked, dict) else left})
            del keys[len(keys) // 2 :]

    def admit(parsed: dict[str, Any], model: Any, **_: Any) -> None:
        if answers:
            parsed["UnprocessedKeys" if model.name == "BatchGetItem" else "UnprocessedItems"] = answers.pop()

    answers: list[dict[str, Any]] = []
    for operation in ("BatchGetItem", "BatchWriteItem"):
        client.meta.events.register(f"before-parameter-build.dynamodb.{operation}", halve)
        client.meta.events.register(f"after-call.dynamodb.{operation}", admit)
    assert [link.id for link in store.links()] == [f"link-{n}" for n in range(9)]
    store.create_run(a_run())
    dispatched(store, list(store.links()))
    store.close_run(RUN_ID, totals=store.get_run(RUN_ID).totals, at=MONDAY)  # type: ignore[union-attr, arg-type]
    assert store.prune_runs(started_before=after(days=1)) == 1
    assert list(store.jobs(RUN_ID)) == []
    assert len(halved) > 4


def test_an_observation_is_not_seen_after_90_days_though_it_is_still_there(client: Any, name: str) -> None:
    store = store_on(client, name)
    observed(store, [404, 404])
    seconds = [int(item["expires_at"]["N"]) for item in client.scan(TableName=name)["Items"] if "expires_at" in item]
    looks = list(store.observations())
    assert seconds == [int((look.observed_at + timedelta(days=90)).timestamp()) for look in looks]
    later = store_on(client, name, clock=StandingClock(looks[0].observed_at + timedelta(days=90)))
    assert list(later.observations()) == list(later.observations(link_id="guide")) == looks[1:]
    again = later.record(looks[0], default_confirm=1, now=after(days=90))
    assert again.kind.value == "duplicate"


def test_an_observation_whose_end_cannot_be_read_is_damaged_and_not_over(client: Any, name: str) -> None:
    store = store_on(client, name)
    store.save_link(a_link(), replaces=None)
    for job in dispatched(store, [a_link()]):
        store.record(an_observation(a_link(), 200, job=job), default_confirm=1, now=after())
    spoil_item(client, name, "observations", "guide:0", expires_at="soon")
    for found in (store.observations, partial(store.observations, run_id=RUN_ID)):
        told: list[DamagedRecord] = []
        assert list(found(damaged=told.append)) == []
        assert ["expires_at is not a whole number" in str(error) for error in told] == [True]


def test_only_observations_expire(client: Any, name: str) -> None:
    store = store_on(client, name)
    observed(store, [404])
    dispatched(store, [a_link()])
    store.acquire_host("h", token="t", job_id="0:guide", now=MONDAY, skew=timedelta(0))
    kinds = {item["sk"]["S"].partition("#")[0] for item in client.scan(TableName=name)["Items"] if "expires_at" in item}
    assert kinds == {"OBS"}


class TestDaysOfNotices:
    def test_unsettled_ones_are_found_however_old_they_are(self, client: Any, name: str) -> None:
        observed(store_on(client, name), [404])
        much_later = store_on(client, name, clock=StandingClock(after(days=800)))
        for _ in range(2):
            assert [n.transition_id for n in much_later.notices(unsettled_only=True)] == ["guide:1"]

    def test_a_settled_day_is_not_read_again_until_something_happens_on_it(self, client: Any, name: str) -> None:
        store = store_on(client, name, clock=StandingClock(after(days=3)))
        observed(store, [404])
        mine = store.claim_notice("guide:1", by="me", now=after(days=3))
        assert mine is not None
        store.save_notice(replace(mine, status=NoticeStatus.SENT), claimed_by="me")
        assert list(store.notices(unsettled_only=True)) == []
        assert self.open_days(client, name) == []
        store.save_notice(replace(mine, status=NoticeStatus.UNKNOWN), claimed_by="me")
        assert [n.transition_id for n in store.notices(unsettled_only=True)] == ["guide:1"]
        assert len(list(store.notices())) == 1

    def test_the_day_that_may_still_grow_stays_open(self, client: Any, name: str) -> None:
        store = store_on(client, name)
        observed(store, [404])
        mine = store.claim_notice("guide:1", by="me", now=MONDAY)
        assert mine is not None
        store.save_notice(replace(mine, status=NoticeStatus.SENT), claimed_by="me")
        assert list(store.notices(unsettled_only=True)) == []
        assert self.open_days(client, name) == ["OPEN#2026-09-28"]

    def test_a_day_with_a_damaged_notice_stays_open(self, client: Any, name: str) -> None:
        store = store_on(client, name, clock=StandingClock(after(days=3)))
        observed(store, [404])
        spoil_item(client, name, "notices", "guide:1", status="no such status")
        assert list(store.notices(unsettled_only=True, damaged=lambda _: None)) == []
        spoil_item(client, name, "notices", "guide:1", status="pending")
        assert [notice.transition_id for notice in store.notices(unsettled_only=True)] == ["guide:1"]

    def open_days(self, client: Any, name: str) -> list[str]:
        keys = [item["sk"]["S"] for item in client.scan(TableName=name)["Items"]]
        return [key for key in keys if key.startswith("OPEN#")]


# many links at once


class PowerCut(BaseException):
    """The process is gone: nothing it had in hand is done any more."""


class TestAWriterThatDies:
    """A registry of more than 100 items, and a process that ends before one of its calls."""

    NEW = tuple(a_link(f"new-{n:02}", f"https://h{n}.example.com/", owner="sre") for n in range(30))
    SRE = Owner(team="sre", address="sre@example.com")

    def cut(self, client: Any, name: str, before_call: int) -> bool:
        """Whether the power was cut: False if the write was over before."""
        store = store_on(client, name)
        store.save_link(a_link(), replaces=None)
        calls = 0

        def count(**_: Any) -> None:
            nonlocal calls
            calls += 1
            if calls > before_call:
                raise PowerCut

        client.meta.events.register("before-call.dynamodb", count)
        try:
            moved = replace(a_link(), host="elsewhere.example.com", owner="sre")
            store.save_registry(owners=[self.SRE], links=[*((link, None) for link in self.NEW), (moved, a_link())])
        except PowerCut:
            return True
        finally:
            client.meta.events.unregister("before-call.dynamodb", count)
        return False

    def test_leaves_all_or_nothing_and_nobody_is_kept_from_writing(self, ministack: Cloud, client: Any) -> None:
        ends: Counter[str] = Counter()
        was_cut = True
        for call in range(3, 99, 2):
            name = make_table(ministack)
            was_cut = self.cut(client, name, call)
            later = store_on(client, name, clock=StandingClock(after(minutes=2)))
            links, owners = list(later.links()), list(later.owners())
            whole = len(links) == len(self.NEW) + 1
            ends["whole" if whole else "nothing"] += 1
            assert owners == ([self.SRE] if whole else [])
            assert whole or links == [a_link()]
            assert [link.id for link in later.links(owner="sre")] == ([link.id for link in links] if whole else [])
            assert sorted(link.id for link in later.links_by_host()) == [link.id for link in links]
            if not whole:
                later.save_registry(owners=[self.SRE], links=[(link, None) for link in self.NEW])
                assert len(list(later.links())) == len(self.NEW) + 1
            if not was_cut:
                break
        assert set(ends) == {"whole", "nothing"}
        assert not was_cut

    def test_who_is_still_writing_gives_up_when_somebody_else_writes_one_of_its_links(
        self, client: Any, name: str
    ) -> None:
        store, other = store_on(client, name), store_on(client, name)
        store.save_link(a_link(), replaces=None)
        begun = iter([True])

        def observe(params: dict[str, Any], **_: Any) -> None:
            if params["Item"].get("state") == {"S": "committed"} and next(begun, False):
                other.record(an_observation(a_link(), 404), default_confirm=1, now=MONDAY)

        client.meta.events.register("before-parameter-build.dynamodb.PutItem", observe)
        changed = replace(a_link(), marker="x", config_version=2)
        with pytest.raises(StaleWrite):
            store.save_registry(links=[(changed, a_link()), *((link, None) for link in self.NEW)])
        assert [(link.id, link.last_sequence, link.marker) for link in other.links()] == [("guide", 0, None)]


def test_items_that_contradict_each_other_are_no_outage(client: Any, name: str) -> None:
    """A link that was deleted by hand and registered again counts its transitions anew, and the old ones are there."""
    store = store_on(client, name, budget=timedelta(seconds=0.5))
    observed(store, [404])
    client.delete_item(TableName=name, Key={"pk": {"S": "LINK#guide"}, "sk": {"S": "STATE"}})
    store.save_link(a_link(), replaces=None)
    with pytest.raises(StoreContended, match=r"contradict each other.* point-in-time"):
        store.record(an_observation(a_link(), 404, sequence=1), default_confirm=1, now=MONDAY)
    store.verify()


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        (("LINK#guide", "STATE"), "Never delete it: its observations and transitions would stay"),
        (("LINK#guide", "PART#1#000000"), "Never delete it"),
        (("LINK#guide", "OBS#0000000000"), "may be deleted"),
        (("RUN#2026-09-28T09:00:00Z", "META"), "Never delete it"),
        (("MUTES", "guide"), "may be deleted"),
    ],
)
def test_what_may_be_done_with_a_damaged_item_depends_on_what_leads_to_it(key: tuple[str, str], advice: str) -> None:
    assert advice in str(damaged_item(key_attributes(key), "url is missing"))


# many workers


def work_off(store: Store, jobs: list[Any], links: dict[str, Any]) -> None:
    for job in jobs:
        store.record(an_observation(links[job.link_id], 404, job=job), default_confirm=1, now=after(hours=1))


@pytest.mark.parametrize(
    "hosts",
    [pytest.param(20, id="a host each"), pytest.param(1, id="all on one host", marks=pytest.mark.campaign)],
)
def test_twenty_workers_lose_no_count_though_overlapping_transactions_are_cancelled(
    ministack: Cloud, name: str, hosts: int
) -> None:
    """Behind a proxy that cancels as DynamoDB documents. All on one host never happens: a host has one message."""
    links = {f"link-{n:03}": a_link(f"link-{n:03}", f"https://h{n % hosts:02}.example.com/{n}") for n in range(60)}
    with fault_proxy(ministack) as proxy:
        clients = [proxy.cloud.client("dynamodb", config=PATIENT) for _ in range(20)]
        stores = [store_on(client, name, budget=timedelta(seconds=60)) for client in clients]
        stores[0].save_registry(links=[(link, None) for link in links.values()])
        jobs = dispatched(stores[0], list(links.values()))
        proxy.hold = 0.01
        with ThreadPoolExecutor(20) as pool:
            shares = [jobs[3 * worker : 3 * worker + 3] for worker in range(20)]  # in host order: a host each, if 20
            list(pool.map(work_off, stores, shares, [links] * 20))
        assert [job.status for job in stores[0].jobs(RUN_ID)] == [JobStatus.DONE] * 60
        chains = list(stores[0].chains(RUN_ID))
        assert (sum(chain.remaining for chain in chains), sum(chain.counts["broken"] for chain in chains)) == (0, 60)
        assert len(list(stores[0].notices())) == len(list(stores[0].transitions())) == 60
        assert (proxy.conflicts == 0) is (hosts == 20)


SEEDS_OF_SEVERAL_HOSTS = (14,)


def test_no_two_hosts_of_a_simulated_week_share_an_item(ministack: Cloud) -> None:
    """So workers, who visit one host each, never get in each other's way."""
    for seed in SEEDS_OF_SEVERAL_HOSTS:
        client = ministack.client("dynamodb", config=PATIENT)
        written: dict[str, set[tuple[str, str]]] = {}

        def note(params: dict[str, Any], written: dict[str, set[tuple[str, str]]] = written, **_: Any) -> None:
            keys = Call(0, "TransactWriteItems", params).written_keys
            for host in {
                sk.removeprefix("HOST#") for pk, sk in keys if pk.startswith("RUN#") and sk.startswith("HOST#")
            }:
                written.setdefault(host, set()).update(keys)

        client.meta.events.register("before-parameter-build.dynamodb.TransactWriteItems", note)
        name = make_table(ministack)
        simulate(seed, open_store=partial(store_on, client, name))
        assert len(written) > 2
        for one, other in combinations(written.values(), 2):
            assert one.isdisjoint(other)


# prices


def test_a_check_takes_at_most_twelve_and_a_half_write_units_with_its_dispatch(client: Any, store: DynamoStore) -> None:
    mean = write_units_per_check(client, store, links=60, hosts=15)
    assert 12 <= mean <= 12.5, mean


# opening


def test_a_trial_finds_out_what_would_fail_in_every_check(client: Any, name: str) -> None:
    store = store_on(client, name)
    store.verify()
    assert client.scan(TableName=name)["Count"] == 0
    with pytest.raises(StoreUnusable, match="table is not there"):
        store_on(client, f"{name}-absent").verify()
    client.create_table(
        TableName=f"{name}-other",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    with pytest.raises(StoreError, match="refused a request"):
        store_on(client, f"{name}-other").verify()


def test_a_table_that_may_be_read_and_not_written_fails_the_trial(ministack: Cloud, name: str) -> None:
    def no_writes(call: Call) -> Fault | None:
        return Fault.SERVER_ERROR if call.operation == "PutItem" else None

    with fault_proxy(ministack) as proxy:
        store = store_on(proxy.cloud.client("dynamodb", config=PATIENT), name, budget=timedelta(seconds=0.2))
        proxy.begin(no_writes)
        with pytest.raises(StoreUnavailable, match="does not serve"):
            store.verify()


def test_a_table_that_is_not_there_is_named(client: Any) -> None:
    with pytest.raises(StoreUnusable, match="table is not there"):
        store_on(client, "nobody-made-it").get_link("guide")


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_an_endpoint_that_is_not_amazons_needs_a_word(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    for name, value in Cloud(endpoint_url="http://127.0.0.1:1").env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert make_client(allow_endpoint=False).meta.endpoint_url == "https://dynamodb.us-east-1.amazonaws.com"
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="allow_endpoint"):
        make_client(allow_endpoint=False)
    assert make_client(allow_endpoint=True).meta.endpoint_url == "http://127.0.0.1:1"


def test_without_a_region_it_is_said_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="AWS_DEFAULT_REGION"):
        make_client(allow_endpoint=False)


def test_waits_grow_are_drawn_and_end_with_the_budget() -> None:
    waited: list[float] = []

    class Clock(StandingClock):
        def monotonic(self) -> float:
            return sum(waited)

    spent = Patience(
        clock=Clock(),
        chance=Halves(),
        wait=lambda wait: waited.append(wait.total_seconds()),
        budget=timedelta(seconds=5),
    )
    with pytest.raises(StoreContended, match="kept changing"):
        spent.until_undisturbed(always_disturbed)
    assert waited == [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_nothing_is_asked_after_the_end_of_a_call_and_no_wait_reaches_beyond_it() -> None:
    waited: list[float] = []

    class Clock(StandingClock):
        def monotonic(self) -> float:
            return 100 + sum(waited)

    unlimited = Patience(clock=Clock(), chance=Halves(), wait=lambda wait: waited.append(wait.total_seconds()))
    with pytest.raises(StoreContended):
        replace(unlimited, until=102.0).until_undisturbed(always_disturbed)
    assert sum(waited) <= 2
    waited.append(2.0)
    asked: list[None] = []
    with pytest.raises(OutOfTime, match="time of this call"):
        replace(unlimited, until=102.0).call(lambda: asked.append(None))
    assert asked == []


class Halves:
    def random(self) -> float:
        return 0.5


def always_disturbed() -> None:
    raise Conflict
