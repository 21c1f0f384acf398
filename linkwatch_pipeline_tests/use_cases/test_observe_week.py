"""A week in this process, in virtual time: the real engine and store, a scripted internet."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus, Run, RunState
from linkwatch_pipeline.use_cases.observe_week import begin_week, group_hosts
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, Script
from linkwatch_pipeline_tests.virtual_clock import run_virtual

SECOND = timedelta(seconds=1)
Build = Callable[..., Engine]


def everything_is_fine(url: str, asked: int) -> Answer:
    return Answer()


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    engines: list[Engine] = []

    def make(script: Script = everything_is_fine, **options: int) -> Engine:
        engines.append(Engine(tmp_path, script, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.store.close()


def urls(hosts: int, per_host: int) -> list[str]:
    return [f"http://host-{h:03d}.example/{n}" for h in range(hosts) for n in range(per_host)]


def test_every_link_is_observed_once_and_the_run_is_closed(build: Build) -> None:
    engine = build()
    engine.register(urls(10, 6))
    run = engine.observe()
    assert run.state is RunState.CLOSED
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 60}
    assert run.totals.expected == 60
    assert Counter(r.url for r in engine.internet.log) == Counter(urls(10, 6))


def test_one_request_per_host_at_a_time_and_a_second_of_rest_after_it(build: Build) -> None:
    engine = build()
    engine.register(urls(50, 8))
    engine.observe()
    assert len(engine.internet.hosts()) == 50
    for host in engine.internet.hosts():
        rest = engine.internet.shortest_rest(host)
        assert rest is not None
        assert rest >= SECOND
    assert engine.internet.most_in_flight == 20


def test_a_second_run_of_a_closed_week_changes_nothing(build: Build) -> None:
    engine = build()
    engine.register(urls(3, 2))
    first = engine.observe()
    requests = len(engine.internet.log)
    assert engine.observe() == first
    assert len(engine.internet.log) == requests


def test_the_pace_stays_near_its_bound_even_with_the_busiest_host_last(build: Build) -> None:
    engine = build(lambda url, asked: Answer(takes=2 * SECOND))
    urls_of_singles = [f"http://a{n:04d}.example/" for n in range(590)]
    engine.register([*urls_of_singles, *(f"http://zz.example/{n}" for n in range(20))])
    engine.observe()
    took = engine.clock.now() - MONDAY
    bound = max(610 * 2 * SECOND / 20, 20 * 3 * SECOND - SECOND)
    assert took / bound <= 1.03


def test_batches_are_worked_on_side_by_side(build: Build) -> None:
    whole = build()
    whole.register(urls(40, 3))
    run = begin_week(whole.store, MONDAY, now=whole.clock.now())
    for batch in group_hosts(whole.store.chains(run.run_id), 8):
        assert len(batch.hosts) == 5
        run_virtual(whole.work(run, batch.hosts), whole.clock)
    assert whole.observe().state is RunState.CLOSED
    # 40 hosts on 20 slots: 6 rounds of 0.2 s and the rests between; batches one after another would need 8 x 2.6 s.
    assert whole.clock.now() - MONDAY < timedelta(seconds=8)


def test_a_host_that_says_429_waits_while_the_others_move_on(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        return Answer(status=429, retry_after="120") if "slow" in url else Answer()

    engine = build(script)
    engine.register(
        [*(f"http://slow.example/{n}" for n in range(10)), *(f"http://quick.example/{n}" for n in range(5))]
    )
    run = engine.observe()
    quick = engine.internet.visits("quick.example")
    assert quick[-1].ended_at - MONDAY < timedelta(seconds=10)
    slow = engine.internet.visits("slow.example")
    # Three throttled answers in a row, 120 s apart; then the rest of the host's jobs of this run expire unasked.
    assert [round((v.started_at - MONDAY).total_seconds()) for v in slow] == [0, 120, 240]
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 5, "throttled": 3, "expired": 7}
    assert {j.reason for j in engine.store.jobs(run.run_id) if j.status is JobStatus.EXPIRED} == {Reason.HOST_THROTTLED}


def test_what_was_throttled_is_looked_at_again_in_a_retry_run_and_the_first_run_stays_as_it_was(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        return Answer(status=429, retry_after="60") if asked == 0 else Answer()

    engine = build(script)
    engine.register(["http://a.example/", "http://b.example/"])
    weekly = engine.observe()
    assert weekly.totals is not None
    assert weekly.totals.by_end == {"throttled": 2}
    retry = engine.observe()
    assert retry.run_id == f"{weekly.run_id}~retry-1"
    assert retry.retry_of == weekly.run_id
    assert retry.totals is not None
    assert retry.totals.by_end == {"reachable": 2}
    assert engine.store.get_run(weekly.run_id) == weekly
    job = engine.store.get_job(retry.run_id, "link-00000")
    assert job is not None
    assert job.retry_of == f"{weekly.run_id}:link-00000"
    assert job.sequence == 1
    assert [o.outcome for o in engine.store.observations(link_id="link-00000")] == [
        Outcome.THROTTLED,
        Outcome.REACHABLE,
    ]
    assert engine.week_is_over()


def test_a_host_that_never_stops_saying_429_ends_after_three_retry_runs(build: Build) -> None:
    engine = build(lambda url, asked: Answer(status=429))
    engine.register(["http://a.example/"])
    ids = [engine.observe().run_id for _ in range(4)]
    assert [i.partition("~")[2] for i in ids] == ["", "retry-1", "retry-2", "retry-3"]
    assert engine.week_is_over()
    assert len(engine.internet.log) == 4


@pytest.mark.parametrize(("began_after_h", "retried"), [(23, True), (23.6, False)])
def test_no_retry_run_begins_later_than_a_day_after_the_intended_time(
    build: Build, began_after_h: float, retried: bool
) -> None:
    engine = build(lambda url, asked: Answer(status=429, retry_after="900"))
    engine.register(urls(1, 3))
    engine.clock.advance(timedelta(hours=began_after_h))
    weekly = engine.observe()  # three answers, a quarter of an hour apart
    assert weekly.totals is not None
    assert weekly.totals.by_end == {"throttled": 3}
    again = engine.observe()
    assert (again.retry_of == weekly.run_id) is retried


@pytest.mark.parametrize(
    ("header", "waits_s"),
    [("120", 120), ("2m", 120), ("Mon, 28 Sep 2026 09:02:00 GMT", 119.8), ("60, 120", 120), ("86400", 900), ("0", 1)],
)
def test_the_wait_that_a_host_names_is_kept_whatever_its_form(build: Build, header: str, waits_s: float) -> None:
    engine = build(lambda url, asked: Answer(status=429 if url.endswith("0") else 200, retry_after=header))
    engine.register(urls(1, 2))
    engine.observe()
    first, second = engine.internet.log
    assert (second.started_at - first.ended_at).total_seconds() == pytest.approx(waits_s)


@pytest.mark.parametrize("header", [None, "soon", "", "-5"])
def test_without_a_usable_wait_the_pauses_are_drawn_and_grow_until_another_answer(
    build: Build, header: str | None
) -> None:
    waits = []
    for seed in range(20):
        engine = build(
            lambda url, asked: Answer(status=200 if url.endswith("9") else 429, retry_after=header), seed=seed
        )
        engine.store.close()
        engine.store = SqliteStore.open(Path(":memory:"))
        engine.register(["http://a.example/0", "http://a.example/1", "http://a.example/9", "http://a.example/3"])
        engine.observe()
        log = engine.internet.log
        waits.append([(b.started_at - a.ended_at).total_seconds() for a, b in pairwise(log)])
        record = engine.store.get_host("a.example")
        assert record is not None
        assert record.backoff_level == 1  # the 200 between took it back to none
    assert all(1 <= first <= 30 and 1 <= second <= 60 and after_200 == 1 for first, second, after_200 in waits)
    assert len({first for first, _, _ in waits}) == 20  # full jitter: no two alike
    assert max(second for _, second, _ in waits) > 30


def test_a_redirect_is_a_visit_to_its_own_host_and_keeps_that_hosts_rest(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        return Answer() if "login" in url else Answer(status=302, location="http://login.example/")

    engine = build(script)
    engine.register([*urls(6, 2), "http://login.example/"])
    run = engine.observe()
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 13}
    for host in engine.internet.hosts():
        rest = engine.internet.shortest_rest(host)
        assert rest is None or rest >= SECOND
    assert len(engine.internet.visits("login.example")) == 13


def test_secrets_in_redirects_are_neither_stored_nor_logged(
    build: Build, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def script(url: str, asked: int) -> Answer:
        if "a.example" in url:
            return Answer(status=302, location="http://b.example/in?page=2&token=s3cret")
        return (
            Answer(status=302, location="http://c.example/?sig=s3cret") if "b.example" in url else Answer(body=b"b0dy")
        )

    engine = build(script)
    engine.register(["http://a.example/"])
    with caplog.at_level("DEBUG"):
        engine.observe()
    (seen,) = engine.store.observations()
    assert [hop.url for hop in seen.redirects] == ["http://a.example/", "http://b.example/in?page=2&token=REDACTED"]
    assert seen.final_url == "http://c.example/?sig=REDACTED"
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    logged = "".join(str(vars(record)) for record in caplog.records)
    assert b"page=2" in stored
    assert "link checked" in logged
    for secret in ("s3cret", "b0dy"):
        assert secret.encode() not in stored
        assert secret not in logged


def test_a_link_whose_redirect_host_stays_busy_is_deferred_three_times_and_then_uncertain(build: Build) -> None:
    def script(url: str, asked: int) -> Answer:
        if "login" in url:
            return Answer(status=429, retry_after="900")
        return Answer(status=302, location="http://login.example/x")

    engine = build(script)
    engine.register(["http://a.example/", "http://login.example/"])
    run = engine.observe()
    job = engine.store.get_job(run.run_id, "link-00000")
    assert job is not None
    # The first answer through the redirect may be the 429 itself; either way nobody waited on the busy host for long.
    assert job.outcome in (Outcome.THROTTLED, Outcome.UNCERTAIN)
    if job.outcome is Outcome.UNCERTAIN:
        assert job.reason is Reason.REDIRECT_HOST_BUSY
        assert job.deferrals == 3


def test_a_sign_in_page_shared_by_many_links_is_visited_in_turn_and_nobody_is_given_up(build: Build) -> None:
    """Without a line, the unlucky ones ran out of patience and ended as `redirect_host_busy`."""

    def script(url: str, asked: int) -> Answer:
        return Answer() if "login" in url else Answer(status=302, location="http://login.example/")

    engine = build(script)
    engine.register([f"http://host-{n:03d}.example/" for n in range(60)])
    run = engine.observe()
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 60}
    rest = engine.internet.shortest_rest("login.example")
    assert rest is not None
    assert rest >= SECOND
    # 60 visits of 0.2 s with a second of rest between: the sign-in host decides how long the run takes.
    assert engine.clock.now() - MONDAY < timedelta(seconds=60 * 1.2 * 1.25)


def test_hundreds_of_links_behind_one_sign_in_page_hold_nobody_else_up(build: Build) -> None:
    """They come back for their turn instead of waiting in the slots, and are asked for at most once more."""

    def script(url: str, asked: int) -> Answer:
        return Answer(status=302, location="http://login.example/") if "private" in url else Answer()

    engine = build(script)
    private = [f"http://private-{n:03d}.example/" for n in range(200)]
    engine.register([*private, *urls(100, 10)])
    run = engine.observe()
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 1200}
    assert max(Counter(r.url for r in engine.internet.log if "private" in r.url).values()) <= 2
    assert len(engine.internet.visits("login.example")) == 200
    # 100 hosts with 10 links of 0.2 s and their rests need 11 s alone, the sign-in host 200 x 1.2 s.
    others = [r.ended_at for r in engine.internet.log if "host-" in r.url]
    assert max(others) - MONDAY < timedelta(seconds=30)
    assert engine.clock.now() - MONDAY < timedelta(seconds=200 * 1.2 * 1.15)


def test_a_url_that_our_policy_refuses_holds_nobody_up(build: Build) -> None:
    engine = build(lambda url, asked: Answer(refused=Reason.BLOCKED_PORT if url.endswith("0") else None))
    engine.register(urls(1, 3))
    run = engine.observe()
    assert run.totals is not None
    assert run.totals.by_end == {"reachable": 2, "uncertain": 1}
    assert engine.clock.now() - MONDAY < timedelta(seconds=5)


def test_a_link_changed_in_mid_run_is_cancelled_and_never_asked_under_the_old_job(build: Build) -> None:
    engine = build()
    engine.register(["http://a.example/1", "http://a.example/2"])
    run = begin_week(engine.store, MONDAY, now=engine.clock.now())
    link = engine.store.get_link("link-00001")
    assert link is not None
    engine.store.save_link(replace(link, url="http://a.example/new", config_version=2), replaces=link)
    run_virtual(engine.work(run), engine.clock)
    closed = engine.observe()
    job = engine.store.get_job(closed.run_id, "link-00001")
    assert job is not None
    assert (job.status, job.reason) == (JobStatus.CANCELLED, Reason.CONFIG_CHANGED)
    assert [r.url for r in engine.internet.log] == ["http://a.example/1"]


def test_what_is_unfinished_after_six_hours_expires_and_the_run_closes_without_it(build: Build) -> None:
    engine = build()
    engine.register(urls(2, 2))
    begin_week(engine.store, MONDAY, now=engine.clock.now())
    engine.clock.advance(timedelta(hours=6))
    run = engine.observe()
    assert run.state is RunState.CLOSED
    assert run.totals is not None
    assert run.totals.by_end == {"expired": 4}
    assert engine.internet.log == []


def test_a_week_that_nobody_ran_is_recorded_as_missed(build: Build) -> None:
    engine = build()
    engine.register(urls(1, 1))
    run = engine.observe(week=MONDAY - timedelta(days=7))
    assert run.state is RunState.MISSED
    assert engine.store.get_run(run.run_id) == run
    assert engine.internet.log == []


@pytest.mark.parametrize("seed", range(8))
def test_a_run_cancelled_at_any_moment_resumes_to_the_same_records(build: Build, seed: int) -> None:
    def script(url: str, asked: int) -> Answer:
        return Answer(status=404 if url.endswith("3") else 200)

    engine = build(script, seed=seed)
    engine.register(urls(12, 5))
    for _ in range(6):
        run = begin_week(engine.store, MONDAY, now=engine.clock.now())
        if run.state.is_over:
            break
        run_virtual(work_for(engine, run, seconds=engine.chance.uniform(0.1, 1.5)), engine.clock)
    closed = engine.observe()
    assert closed.totals is not None
    assert closed.totals.by_end == {"reachable": 48, "broken": 12}
    observations = list(engine.store.observations())
    assert len(observations) == 60
    assert len(list(engine.store.transitions())) == len(list(engine.store.notices())) == 12
    for host in engine.internet.hosts():
        rest = engine.internet.shortest_rest(host)
        assert rest is not None
        assert rest >= SECOND


async def work_for(engine: Engine, run: Run, *, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await engine.work(run)
