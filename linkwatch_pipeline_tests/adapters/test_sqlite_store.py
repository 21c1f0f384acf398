"""What only the SQLite store does: its file, its schema, its errors, its streams, and what a crash leaves behind."""

from __future__ import annotations

import dataclasses
import multiprocessing
import re
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store import rows
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.adapters.store.table import Table, Undecodable
from linkwatch_pipeline.domain.errors import NotFound, StoreError, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.hosts import HostRecord
from linkwatch_pipeline.domain.links import Ack, Allocation, AllocationSlot, Delivery, LinkState, Owner, Place
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import NoticeStatus, notice_for
from linkwatch_pipeline.domain.observations import RedirectHop
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.domain.runs import JobStatus, Ruling, RulingKind, RunCounts, RunState
from linkwatch_pipeline.domain.transitions import Transition
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
)
from linkwatch_pipeline_tests.contracts.store_workers import (
    CRASH_LINKS,
    assert_records_agree,
    observe_week_after_week,
)

SCHEMA_VERSION = 3


FIRST_VERSION_ROWS = """
INSERT INTO links VALUES ('guide', 'https://docs.example.com/guide', 'docs.example.com', 'docs-team', NULL, NULL, 1,
    '2026-09-27T09:00:00.000000Z', NULL, '[]', '[]', 'reachable', '2026-09-28T09:00:00.000000Z', 2, 1, 0, '{}');
INSERT INTO owners VALUES ('docs-team', 'docs@example.com');
INSERT INTO runs VALUES ('2026-09-28T09:00:00Z', '2026-09-28T09:00:00.000000Z', '2026-09-28T09:00:00.000000Z', 'closed',
    0, 0, NULL, '2026-09-28T10:00:00.000000Z', NULL, NULL, NULL);
INSERT INTO runs VALUES ('2026-10-05T09:00:00Z', '2026-10-05T09:00:00.000000Z', '2026-10-05T09:00:00.000000Z', 'open',
    0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO transitions VALUES
    ('guide:1', 'guide', 'unknown', 'broken', 1, 0, '0:guide', '2026-09-28T09:00:00.000000Z', NULL),
    ('guide:2', 'guide', 'broken', 'reachable', 2, 1, '1:guide', '2026-09-28T09:00:00.000000Z', NULL);
INSERT INTO notices
    SELECT id, link_id, 'https://docs.example.com/guide', 'docs-team', '[]', '[]', from_state, to_state, NULL, NULL,
        job_id, 404, NULL, at, at, at, CASE version WHEN 1 THEN 'sent' ELSE 'pending' END, 2 - version,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM transitions;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "linkwatch.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore.open(path, busy_timeout=timedelta(milliseconds=50))
    yield opened
    opened.close()


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    return store._database._connection


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


class TestTheFile:
    def test_it_is_made_with_the_settings_that_keep_the_promises(self, store: SqliteStore, path: Path) -> None:
        settings = {
            "journal_mode": "wal",
            "synchronous": 2,  # FULL
            "foreign_keys": 1,
            "user_version": SCHEMA_VERSION,
            "encoding": "UTF-8",
        }
        assert {name: pragma(connection_of(store), name) for name in settings} == settings
        assert path.is_file()

    def test_an_ordinary_store_waits_five_seconds_for_another_process(self, path: Path) -> None:
        with closing(SqliteStore.open(path)) as store:
            assert pragma(connection_of(store), "busy_timeout") == 5000

    def test_opening_it_again_changes_nothing(self, store: SqliteStore, path: Path) -> None:
        schema = connection_of(store).execute("SELECT * FROM sqlite_master").fetchall()
        with closing(SqliteStore.open(path)) as again:
            assert connection_of(again).execute("SELECT * FROM sqlite_master").fetchall() == schema

    def test_an_empty_file_is_a_lost_store_and_no_new_one(self, path: Path) -> None:
        path.touch()
        with pytest.raises(StoreUnusable, match=r"is empty: .* Put a backup in its place, or delete"):
            SqliteStore.open(path)
        assert path.read_bytes() == b""

    def test_a_new_one_appears_whole_and_leaves_nothing_beside_it(self, path: Path) -> None:
        SqliteStore.open(path).close()
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    def test_a_store_may_live_in_memory(self) -> None:
        with closing(SqliteStore.open(Path(":memory:"))) as store:
            store.save_link(a_link(), replaces=None)
            assert list(store.links()) == [a_link()]
        assert not Path(":memory:").exists()

    def test_a_newer_database_is_refused_and_left_alone(self, path: Path) -> None:
        SqliteStore.open(path).close()
        with closing(sqlite3.connect(path)) as newer:
            newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 41}")
        before = path.read_bytes()
        with pytest.raises(StoreUnusable, match=rf"version {SCHEMA_VERSION + 41}\b.*version {SCHEMA_VERSION}\b"):
            SqliteStore.open(path)
        assert path.read_bytes() == before

    def test_a_database_of_the_first_version_keeps_all_it_holds(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as old:
            migrations = Path(rows.__file__).parent / "migrations"
            old.executescript((migrations / "0001_initial.sql").read_text(encoding="utf-8"))
            old.execute("PRAGMA user_version = 1")
            old.executescript(FIRST_VERSION_ROWS)
        with closing(SqliteStore.open(path)) as store:
            [sent, pending] = store.notices()
            assert (sent.transition_id, sent.status, sent.mail_id) == ("guide:1", NoticeStatus.SENT, "guide:1")
            assert (pending.status, pending.release_at, pending.mail_id) == (NoticeStatus.PENDING, after(), None)
            assert store.get_owner("docs-team") == Owner(team="docs-team", address="docs@example.com")
            [closed, running] = store.runs()
            assert closed.ruling == Ruling(kind=RulingKind.RELEASED, at=after(hours=1))
            assert (running.state, running.ruling) == (RunState.OPEN, None)
            assert [link.ack for link in store.links()] == [None]
            assert list(store.notices(unsettled_only=True)) == [pending]

    def test_a_database_of_another_program_is_refused_and_left_alone(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as theirs:
            theirs.execute("CREATE TABLE links (theirs TEXT)")
        before = path.read_bytes()
        with pytest.raises(StoreUnusable, match="another program"):
            SqliteStore.open(path)
        assert path.read_bytes() == before
        assert not path.with_name(path.name + "-wal").exists()

    def test_a_migration_is_done_whole_or_not_at_all(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as halfway:
            halfway.execute(f"PRAGMA application_id = {int.from_bytes(b'lkwt', 'big')}")
            halfway.execute("CREATE TABLE exported_weeks (in_the_way TEXT)")
        with pytest.raises(StoreError, match="exported_weeks"):
            SqliteStore.open(path)
        with closing(sqlite3.connect(path)) as left:
            assert left.execute("SELECT name FROM sqlite_master").fetchall() == [("exported_weeks",)]
            assert pragma(left, "user_version") == 0

    def test_many_may_open_a_new_file_at_once(self, path: Path) -> None:
        with ThreadPoolExecutor(8) as pool:  # each with a connection of its own, as processes have
            for _ in range(5):
                patient = partial(SqliteStore.open, busy_timeout=timedelta(seconds=60))
                for store in pool.map(patient, [path] * 8):
                    store.close()
                for file in path.parent.iterdir():
                    file.unlink()


class TestErrorsInOurWords:
    def test_a_file_that_is_no_database(self, path: Path) -> None:
        path.write_bytes(b"<html>no database</html>" * 100)
        before = path.read_bytes()
        with pytest.raises(StoreUnusable, match=r"not a linkwatch database.*backup"):
            SqliteStore.open(path)
        assert path.read_bytes() == before

    def test_a_damaged_database(self, path: Path) -> None:
        with closing(SqliteStore.open(path)) as store:
            for n in range(300):
                store.save_link(a_link(f"link-{n}", marker="x" * 200), replaces=None)
        content = bytearray(path.read_bytes())
        content[8192:] = Random(1).randbytes(len(content) - 8192)
        path.write_bytes(content)
        with pytest.raises(StoreUnusable, match="damaged"):
            with closing(SqliteStore.open(path)) as store:
                list(store.links())

    def test_a_folder_that_does_not_exist(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="its folder exists"):
            SqliteStore.open(tmp_path / "nowhere" / "linkwatch.sqlite3")

    def test_a_folder_in_the_files_place(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="cannot be opened"):
            SqliteStore.open(tmp_path)

    def test_a_full_disk_writes_nothing_and_is_over_when_there_is_space(self, store: SqliteStore) -> None:
        """SQLite's own page limit raises what a full disk does."""
        store.save_link(a_link(), replaces=None)
        connection = connection_of(store)
        connection.execute(f"PRAGMA max_page_count = {pragma(connection, 'page_count')}")
        big = an_observation(a_link(), 404, page_hints=("x" * 50_000,))
        with pytest.raises(StoreUnavailable, match=r"disk is full.*Free some space"):
            store.record(big, default_confirm=1, now=MONDAY)
        assert list(store.links()) == [a_link()]
        assert list(store.observations()) == []
        assert list(store.notices()) == []
        connection.execute("PRAGMA max_page_count = 1000000")
        assert store.record(big, default_confirm=1, now=MONDAY).kind is RecordKind.APPLIED

    def test_a_file_that_another_process_keeps_locked(self, store: SqliteStore, path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked by another process"):
                store.save_link(a_link(), replaces=None)
            assert list(store.links()) == []  # reading goes on meanwhile
            other.execute("ROLLBACK")
        store.save_link(a_link(), replaces=None)

    def test_a_file_that_must_not_be_written(self, store: SqliteStore) -> None:
        connection_of(store).execute("PRAGMA query_only = 1")
        with pytest.raises(StoreUnavailable, match="write permission"):
            store.save_link(a_link(), replaces=None)

    def test_a_store_that_was_closed(self, store: SqliteStore) -> None:
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.get_link("guide")
        with pytest.raises(StoreError, match="closed"):
            store.put_owner(Owner(team="sre", address="sre@example.com"))
        store.close()

    def test_a_job_of_a_run_that_is_not_there(self, store: SqliteStore) -> None:
        with pytest.raises(NotFound):
            store.put_jobs([a_job(a_link())])


class TestOneTransaction:
    @pytest.mark.parametrize(
        "obstacle",
        [
            "INSERT ON observations",
            "UPDATE ON links",
            "INSERT ON transitions",
            "INSERT ON notices",
            "UPDATE ON jobs",
            "UPDATE ON chains",
        ],
    )
    def test_whatever_fails_in_a_recording_nothing_of_it_is_written(self, store: SqliteStore, obstacle: str) -> None:
        store.save_link(a_link(), replaces=None)
        (job,) = dispatched(store, [a_link()])
        before = list(connection_of(store).iterdump())
        connection_of(store).execute(
            f"CREATE TEMP TRIGGER obstacle AFTER {obstacle} BEGIN SELECT RAISE(ABORT, 'in the way'); END"
        )
        look = an_observation(a_link(), 404, job=job)
        with pytest.raises(StoreError, match="in the way"):
            store.record(look, default_confirm=1, now=MONDAY)
        connection_of(store).execute("DROP TRIGGER obstacle")
        assert list(connection_of(store).iterdump()) == before
        assert store.record(look, default_confirm=1, now=MONDAY).kind is RecordKind.APPLIED

    def test_threads_may_share_one_store(self, store: SqliteStore) -> None:
        links = [a_link(f"link-{n}", f"https://h{n}.example.com/") for n in range(4)]
        for link in links:
            store.save_link(link, replaces=None)

        def observe(turn: int) -> RecordKind:
            link, sequence = links[turn % 4], turn // 4
            kind = store.record(an_observation(link, 404, sequence=sequence), default_confirm=1, now=MONDAY).kind
            assert len(list(store.links())) == 4
            return kind

        with ThreadPoolExecutor(8) as pool:
            kinds = list(pool.map(observe, range(120)))
        assert set(kinds) <= {RecordKind.APPLIED, RecordKind.HISTORY}
        assert len(list(store.observations())) == 120
        assert [t.id for t in store.transitions()] == [f"{link.id}:1" for link in links]


class TestRows:
    full_link = a_link(
        marker="m",
        confirm=2,
        retired_at=after(),
        state_since=after(),
        state=LinkState.BROKEN,
        places=(Place(file="a", line=1),),
        also_used_by=("b",),
        allocations={AllocationSlot.RETRY: Allocation(run_id="r", sequence=1, host="h", config_version=1)},
        ack=Ack(version=0, reason="r", by="b", at=after()),
    )
    full_look = an_observation(
        full_link,
        marker_found=False,
        content_type="text/html",
        tls_not_after=after(),
        redirects=(RedirectHop(url="u", status=301),),
        page_hints=("h",),
        retry_of="r",
        run_id="r",
    )
    transition = Transition(
        id="guide:1",
        link_id="guide",
        from_state=LinkState.REACHABLE,
        to_state=LinkState.BROKEN,
        version=1,
        sequence=1,
        job_id="j",
        at=after(),
        since=after(),
    )
    full_notice = dataclasses.replace(
        notice_for(full_link, transition, full_look, now=after()),
        status=NoticeStatus.SENT,
        claimed_by="c",
        claim_until=after(),
        recipient="r",
        mail_id="m",
        release_at=after(),
        provider_id="p",
        last_error="e",
        next_attempt_at=after(),
        sent_at=after(),
        observed_reason=Reason.GONE,
    )
    full_chain = a_chain([a_job(full_link)], counts={"broken": 1}, first_observed_at=after(), last_observed_at=after())
    cases = (
        (rows.LINKS, full_link),
        (rows.OWNERS, Owner(team="t", address="a", delivery=Delivery.DIGEST)),
        (
            rows.RUNS,
            a_run(
                expected=1,
                dispatched_at=after(),
                closed_at=after(),
                cursor="c",
                retry_of="r",
                totals=RunCounts(expected=1, by_end={"broken": 1}),
                ruling=Ruling(kind=RulingKind.HELD, at=after(), by="b", why="w"),
            ),
        ),
        (
            rows.JOBS,
            a_job(
                full_link,
                next="n",
                retry_of="r",
                status=JobStatus.DONE,
                outcome=full_look.outcome,
                reason=Reason.GONE,
                content_digest="d",
            ),
        ),
        (rows.CHAINS, dataclasses.replace(full_chain, planned_sent_at=after())),
        (
            rows.HOSTS,
            HostRecord(host="h", owner_token="o", job_id="j", lease_until=after(), next_allowed_at=after()),
        ),
        (rows.OBSERVATIONS, full_look),
        (rows.TRANSITIONS, transition),
        (rows.NOTICES, full_notice),
        (
            rows.MUTES,
            Mute(
                target="link:a",
                reason="r",
                muted_by="b",
                since=after(),
                until=after(),
                ended_at=after(),
                lifted_at=after(),
            ),
        ),
        (rows.EXPORTED_WEEKS, ExportedWeek(week=MONDAY, rows=1, sha256="s", exported_at=after())),
    )

    @pytest.mark.parametrize(("table", "record"), cases, ids=[table.name for table, _ in cases])
    def test_a_record_has_a_column_per_field_and_comes_back_with_its_types(
        self, store: SqliteStore, table: Table[Any], record: Any
    ) -> None:
        described = connection_of(store).execute(f"PRAGMA table_info({table.name})").fetchall()
        assert [column for _, column, *_ in described] == [field.name for field in dataclasses.fields(record)]
        connection_of(store).execute("PRAGMA foreign_keys = OFF")
        connection_of(store).execute(table.insert, table.encode(record))
        back = table.decode(connection_of(store).execute(table.select).fetchone())
        assert back == record
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            assert value is not None, f"give {field.name} a value, or nobody sees whether it is converted"
            assert type(getattr(back, field.name)) is type(value), field.name

    @pytest.mark.parametrize(("table", "record"), cases, ids=[table.name for table, _ in cases])
    def test_a_row_that_lacks_a_field_or_holds_something_else_is_told_by_that_field(
        self, table: Table[Any], record: Any
    ) -> None:
        row = table.encode(record)
        for index, column in enumerate(table.columns):
            for wrong in (b"bytes", 1.5, "no such word", -1, None, '{"a": 1}', "[[1]]"):
                told = self.told_of(table, (*row[:index], wrong, *row[index + 1 :]))
                assert told is None or (told.table, told.field) == (table.name, column)
            assert self.told_of(table, (*row[:index], b"bytes", *row[index + 1 :])) is not None

    def told_of(self, table: Table[Any], row: Any) -> Undecodable | None:
        try:
            table.decode(row)
        except Undecodable as told:
            return told
        return None

    def test_every_table_has_a_codec(self, store: SqliteStore) -> None:
        tables = connection_of(store).execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        assert {name for (name,) in tables} == {table.name for table, _ in self.cases}


EQUALITY = re.compile(r"\w+ = '")  # a condition that an index has to serve


def plan_of(connection: sqlite3.Connection, sql: str) -> str:
    return " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}"))


LISTINGS: dict[str, Callable[[Store], Iterator[Any]]] = {
    "links": lambda store: store.links(),
    "links of an owner": lambda store: store.links(owner="docs-team"),
    "links by host": lambda store: store.links_by_host(after_host="a"),
    "owners": lambda store: store.owners(),
    "runs": lambda store: store.runs(open_only=True),
    "jobs": lambda store: store.jobs(RUN_ID),
    "jobs of a host": lambda store: store.jobs(RUN_ID, host="docs.example.com"),
    "chains": lambda store: store.chains(RUN_ID),
    "observations": lambda store: store.observations(),
    "observations of a link": lambda store: store.observations(link_id="guide"),
    "observations of a run": lambda store: store.observations(run_id=RUN_ID),
    "observations of a week": lambda store: store.observations(since=MONDAY, until=after(days=7)),
    "transitions": lambda store: store.transitions(),
    "transitions of a link": lambda store: store.transitions(link_id="guide"),
    "exported weeks": lambda store: store.exported_weeks(),
    "notices": lambda store: store.notices(),
    "unsettled notices": lambda store: store.notices(unsettled_only=True),
    "notices of a link": lambda store: store.notices(link_id="guide"),
    "notices of a run": lambda store: store.notices(run_id=RUN_ID, unsettled_only=True),
}


class TestStreams:
    @pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS.keys())
    def test_a_listing_leans_on_an_index_and_never_sorts(
        self, store: SqliteStore, listing: Callable[[Store], Iterator[Any]]
    ) -> None:
        sent: list[str] = []
        connection = connection_of(store)
        connection.set_trace_callback(sent.append)
        list(listing(store))
        connection.set_trace_callback(None)
        (sql,) = sent
        plan = plan_of(connection, sql)
        assert "TEMP B-TREE" not in plan
        assert plan.count("=?") >= len(EQUALITY.findall(sql)), f"an index finds less than is asked for: {plan}"
        assert "SCAN" not in plan or "WHERE TRUE" in sql or "+observed_at" in sql or "USING INDEX" in plan, plan

    def test_mending_a_chain_reads_the_jobs_of_its_host_alone(self, store: SqliteStore) -> None:
        store.create_run(a_run())
        job = a_job(a_link())
        store.put_jobs([job])
        store.put_chain(a_chain([job], head=None))
        sent: list[str] = []
        connection = connection_of(store)
        connection.set_trace_callback(sent.append)
        assert store.rechain(RUN_ID, job.host, now=MONDAY) is not None
        connection.set_trace_callback(None)
        (sql,) = (each for each in sent if "FROM jobs" in each)
        assert "jobs_by_host (run_id=? AND host=?" in plan_of(connection, sql)

    def test_unsettled_notices_are_found_without_reading_the_settled_ones(self, store: SqliteStore) -> None:
        sent: list[str] = []
        connection = connection_of(store)
        connection.set_trace_callback(sent.append)
        list(store.notices(unsettled_only=True))
        connection.set_trace_callback(None)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sent[0]}")]
        assert plan == ["SCAN notices USING INDEX notices_unsettled"]
        settled = {f"'{status.value}'" for status in NoticeStatus if status.is_settled}
        assert set(sent[0].partition("NOT IN (")[2].partition(")")[0].split(", ")) == settled

    @pytest.fixture
    def many_links(self, store: SqliteStore) -> SqliteStore:
        with store._database.transaction() as write:
            for n in range(5_000):
                write.insert(rows.LINKS, a_link(f"link-{n:05}", f"https://h{n % 7}.example.com/{n}"))
        return store

    def test_memory_does_not_grow_with_the_registry(self, many_links: SqliteStore) -> None:
        tracemalloc.start()
        try:
            assert sum(1 for _ in many_links.links_by_host()) == 5_000
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 1_500_000  # all of them at once are more than 5 MB

    def test_a_stream_in_progress_holds_no_snapshot(self, many_links: SqliteStore, path: Path) -> None:
        """A reader that kept one would let the write-ahead log grow for as long as it reads."""
        stream = many_links.links()
        next(stream)
        with closing(sqlite3.connect(path)) as other:
            busy, _, _ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0
        assert sum(1 for _ in stream) == 4_999


class TestKill9:
    ROUNDS = 10

    def test_a_killed_process_leaves_whole_commits_only(self, path: Path) -> None:
        rng = Random(20260928)
        open_store: Callable[[], Store] = partial(SqliteStore.open, path)
        with closing(open_store()) as store:
            for link in CRASH_LINKS:
                store.save_link(link, replaces=None)
        committed: set[str] = set()
        child = _Child(open_store)
        for round_number in range(self.ROUNDS):
            following = _Child(open_store) if round_number < self.ROUNDS - 1 else None  # starts meanwhile
            committed |= child.run_and_kill(reports=rng.randint(1, 70), then_seconds=rng.random() * 0.004)
            with closing(sqlite3.connect(path)) as looked_at:
                assert looked_at.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert looked_at.execute("PRAGMA foreign_key_check").fetchall() == []
            with closing(open_store()) as store:
                assert_records_agree(store)
                assert committed <= {look.job_id for look in store.observations()}
            if following is not None:
                child = following
        assert len(committed) > self.ROUNDS


class _Child:
    """A process that observes week after week until it is killed."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._here, there = spawn.Pipe()
        self._process = spawn.Process(target=observe_week_after_week, args=(open_store, there), daemon=True)
        self._process.start()
        there.close()

    def run_and_kill(self, *, reports: int, then_seconds: float) -> set[str]:
        """Let it go, kill it so long after so many reports; the job ids it reported as committed."""
        assert self._here.recv() == "ready"
        self._here.send("go")
        committed = {self._here.recv() for _ in range(reports)}
        self._process.join(then_seconds)
        self._process.kill()
        self._process.join()
        assert self._process.exitcode == -9
        try:
            while True:
                committed.add(self._here.recv())
        except EOFError:
            self._here.close()
            return committed
