"""Registering many links from a table: all or nothing, every bad row named (SPEC 6)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import StaleWrite, StoreUnavailable
from linkwatch_pipeline.domain.links import Link, Owner, Place
from linkwatch_pipeline.domain.tables import Table, TableRow
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.import_links import Imported, import_links
from linkwatch_pipeline.use_cases.register import Change, retire_link, set_owner
from linkwatch_pipeline_tests.builders import MONDAY, a_link, after

GUIDE = {"link_id": "guide", "url": "https://docs.example.com/guide", "owner": "docs"}
PAGER = {"link_id": "pager", "url": "https://docs.example.com/pager", "owner": "sre", "notify": "sre@example.com"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "linkwatch.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore.open(path)
    set_owner(opened, team="docs", address="docs@example.com")
    yield opened
    opened.close()


def table(*rows: dict[str, str], columns: tuple[str, ...] | None = None) -> Table:
    """The rows on lines 2, 3, ..."""
    return Table(
        rows=tuple(TableRow(line=line, cells=cells) for line, cells in enumerate(rows, start=2)), columns=columns
    )


@pytest.fixture
def asks_for_no_link(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for each row is what makes a large file slow where the store is a service."""

    def ask(*_: object, **__: object) -> None:
        raise AssertionError("the listing has said it already")

    monkeypatch.setattr(store, "get_link", ask)


def imported(store: Store, *rows: dict[str, str], **given: Any) -> Imported:
    return import_links(store, table(*rows), **{"now": MONDAY, **given})


def refused(store: Store, *rows: dict[str, str]) -> list[tuple[int, str]]:
    """(line, field) of each problem; the store is as before."""
    before = (list(store.links()), list(store.owners()))
    done = imported(store, *rows, now=after(days=9))
    assert done.problems
    assert (done.ids, done.owners) == ({}, ())
    assert (list(store.links()), list(store.owners())) == before
    return [(problem.line, problem.field) for problem in done.problems]


def stored(store: Store, link_id: str = "guide") -> Link:
    link = store.get_link(link_id)
    assert link is not None
    return link


def test_each_row_becomes_a_link_with_all_its_fields(store: Store) -> None:
    full = {**PAGER, "expect": " =1+1 ", "confirm": "2", "file": "docs/a b.md", "line": "3"}
    done = imported(store, {**GUIDE, "url": " HTTPS://Docs.Example.com:443/guide#top "}, full)
    assert done == Imported(ids={Change.REGISTERED: ("guide", "pager")}, owners=("sre",))
    assert stored(store) == a_link(owner="docs", active_since=MONDAY)
    assert stored(store, "pager") == a_link(
        "pager",
        PAGER["url"],
        owner="sre",
        active_since=MONDAY,
        marker=" =1+1 ",
        confirm=2,
        places=(Place(file="docs/a b.md", line=3),),
    )
    assert store.get_owner("sre") == Owner(team="sre", address="sre@example.com")


def test_the_names_that_the_list_of_links_uses_will_do(store: Store) -> None:
    imported(store, {"id": "guide", "url": GUIDE["url"], "owner": "docs", "marker": "Guide"})
    assert stored(store).marker == "Guide"


def test_an_identical_repetition_changes_nothing(store: Store) -> None:
    rows = (GUIDE, {**PAGER, "expect": "Pager", "file": "a.md", "line": "1"})
    imported(store, *rows)
    before = list(store.links())
    assert imported(store, *rows, now=after(days=1)) == Imported(ids={Change.UNCHANGED: ("guide", "pager")})
    assert list(store.links()) == before


def test_an_empty_table_imports_nothing(store: Store) -> None:
    assert imported(store) == Imported()


def test_a_retired_link_is_revived_and_a_recorded_one_gets_its_owner(store: Store) -> None:
    imported(store, GUIDE)
    retire_link(store, link_id="guide", now=after(days=1))
    store.save_link(a_link("fed", "https://docs.example.com/fed", owner=None), replaces=None)
    done = imported(
        store, GUIDE, {"link_id": "fed", "url": "https://docs.example.com/fed", "owner": "docs"}, now=after(days=2)
    )
    assert done.ids == {Change.REVIVED: ("guide",), Change.REGISTERED: ("fed",)}
    assert (stored(store).retired_at, stored(store).active_since) == (None, after(days=2))
    assert stored(store, "fed").owner == "docs"


class TestPlaces:
    def test_rows_of_one_link_that_differ_in_place_are_its_places(self, store: Store) -> None:
        rows = [{**GUIDE, "file": file, "line": line} for file, line in [("b.md", "2"), ("a.md", "10"), ("a.md", "9")]]
        assert imported(store, *rows, rows[0], GUIDE).ids == {Change.REGISTERED: ("guide",)}
        assert [(place.file, place.line) for place in stored(store).places] == [("a.md", 9), ("a.md", 10), ("b.md", 2)]

    def test_places_replace_earlier_ones_and_stay_if_none_are_given(self, store: Store) -> None:
        imported(store, {**GUIDE, "file": "a.md", "line": "1"})
        assert imported(store, GUIDE).ids == {Change.UNCHANGED: ("guide",)}
        assert imported(store, {**GUIDE, "file": "b.md", "line": "2"}).ids == {Change.UPDATED: ("guide",)}
        assert stored(store).places == (Place(file="b.md", line=2),)
        assert stored(store).config_version == 1


class TestRefusals:
    def test_every_bad_field_of_every_row_is_named_in_one_go(self, store: Store) -> None:
        bad = {
            "link_id": "my guide",
            "url": "ftp://docs.example.com/",
            "owner": "a@b",
            "notify": "nobody",
            "expect": "two\nlines",
            "confirm": "11",
            "file": "a\x1b.md",
            "line": "0",
        }
        assert refused(
            store, bad, GUIDE, {"confirm": "1.0", "line": "-1", "file": "x" * 1025}, {**PAGER, "xyz": "1"}
        ) == [
            *((2, name) for name in bad),
            *((4, name) for name in ("link_id", "url", "owner", "confirm", "line", "file")),
            (5, "xyz"),
        ]

    @pytest.mark.parametrize("half", ["file", "line"])
    def test_half_a_place_is_no_place(self, store: Store, half: str) -> None:
        assert refused(store, {**GUIDE, half: "1"}) == [(2, "line" if half == "file" else "file")]

    def test_a_missing_column_is_told_once(self, store: Store) -> None:
        done = import_links(store, table({"url": "nonsense"}, columns=("url", "expct")), now=MONDAY)
        assert [(p.line, p.field) for p in done.problems] == [(1, "expct"), (1, "link_id"), (1, "owner"), (2, "url")]
        assert "Did you mean expect?" in done.problems[0].problem

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"url": "https://docs.example.com/other"}, "url"),
            ({"owner": "sre", "notify": "sre@example.com"}, "owner"),
            ({"expect": "x"}, "expect"),
            ({"confirm": "2"}, "confirm"),
        ],
    )
    def test_an_id_with_other_content_is_refused_in_the_file_and_in_the_store(
        self, store: Store, change: dict[str, str], field: str
    ) -> None:
        assert refused(store, GUIDE, {**GUIDE, **change}) == [(3, field)]
        imported(store, GUIDE)
        assert refused(store, PAGER, {**GUIDE, **change}) == [(3, field)]

    def test_a_url_under_two_ids_is_refused_in_the_file_and_in_the_store(self, store: Store) -> None:
        other = {**GUIDE, "link_id": "other", "url": "https://DOCS.example.com/guide"}
        assert refused(store, GUIDE, other) == [(3, "url")]
        imported(store, GUIDE)
        assert refused(store, PAGER, other) == [(3, "url")]
        retire_link(store, link_id="guide", now=MONDAY)
        assert imported(store, other).ids == {Change.REGISTERED: ("other",)}
        assert refused(store, GUIDE) == [(2, "url")]  # it cannot be revived beside the other

    def test_a_bad_row_still_counts_against_the_others(self, store: Store) -> None:
        """So that nobody mends one thing only to be told of the next."""
        other = {**GUIDE, "link_id": "other", "confirm": "many"}
        assert refused(store, GUIDE, other) == [(3, "confirm"), (3, "url")]

    def test_an_owner_nobody_knows_needs_one_address_in_any_row(self, store: Store) -> None:
        unknown = {key: PAGER[key] for key in ("link_id", "url", "owner")}
        assert refused(store, unknown, GUIDE) == [(2, "owner")]
        second = {**PAGER, "link_id": "second", "url": "https://docs.example.com/2"}
        assert refused(store, unknown, {**second, "url": "nonsense"}) == [(3, "url")]
        assert imported(store, unknown, second).owners == ("sre",)

    def test_an_owner_has_one_address_in_the_file_and_in_the_store(self, store: Store) -> None:
        second = {
            "link_id": "second",
            "url": "https://docs.example.com/2",
            "owner": "sre",
            "notify": "other@example.com",
        }
        assert refused(store, PAGER, second) == [(3, "notify")]
        assert refused(store, {**GUIDE, "notify": "other@example.com"}, PAGER) == [(2, "notify")]
        assert imported(store, {**GUIDE, "notify": "docs@example.com"}).owners == ()


class TestWriting:
    ROWS = tuple(
        {"link_id": f"link-{n}", "url": f"https://h{n}.example.com/", "owner": "new", "notify": "new@example.com"}
        for n in range(500)
    )

    def test_a_full_disk_leaves_nothing_of_it(self, store: SqliteStore) -> None:
        """SQLite's own page limit raises what a full disk does, in the middle of the write."""
        connection: sqlite3.Connection = store._database._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreUnavailable, match="Nothing was written"):
            imported(store, *self.ROWS)
        assert (list(store.links()), store.get_owner("new")) == ([], None)
        connection.execute("PRAGMA max_page_count = 1000000")
        assert imported(store, *self.ROWS).count(Change.REGISTERED) == 500

    def test_somebody_else_writing_meanwhile_is_no_loss_for_either(self, store: SqliteStore, path: Path) -> None:
        imported(store, GUIDE)
        retire_link(store, link_id="guide", now=MONDAY)
        overtaken: Any = Overtaken(store, path, times=1)
        assert imported(overtaken, GUIDE, PAGER).ids == {Change.REVIVED: ("guide",), Change.REGISTERED: ("pager",)}
        assert stored(store).also_used_by == ("x",)

    def test_what_somebody_else_took_meanwhile_is_a_conflict(self, store: SqliteStore, path: Path) -> None:
        overtaken: Any = Overtaken(store, path, times=1, puts=a_link("guide", "https://docs.example.com/x"))
        assert [(p.line, p.field) for p in imported(overtaken, PAGER, GUIDE).problems] == [(3, "url")]
        assert store.get_link("pager") is None
        assert store.get_owner("sre") is None

    def test_a_registry_that_never_stands_still_is_given_up(self, store: SqliteStore, path: Path) -> None:
        imported(store, GUIDE)
        retire_link(store, link_id="guide", now=MONDAY)
        overtaken: Any = Overtaken(store, path, times=1000)
        with pytest.raises(StaleWrite, match="nothing was written"):
            imported(overtaken, GUIDE, PAGER)
        assert store.get_link("pager") is None


class Overtaken:
    """A store that another process writes to between our reading and our writing, a number of times.

    It puts the link `puts`, or changes the guide.
    """

    def __init__(self, store: SqliteStore, path: Path, *, times: int, puts: Link | None = None) -> None:
        self._store = store
        self._path = path
        self._times = times
        self._puts = puts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def save_registry(self, **written: Any) -> None:
        if self._times:
            self._times -= 1
            with closing(SqliteStore.open(self._path)) as other:
                if self._puts is not None:
                    other.save_link(self._puts, replaces=None)
                else:
                    current = stored(other)
                    other.save_link(replace(current, also_used_by=(*current.also_used_by, "x")), replaces=current)
        self._store.save_registry(**written)


@pytest.mark.usefixtures("asks_for_no_link")
def test_many_rows_are_compared_with_one_listing_and_not_asked_for_one_by_one(store: SqliteStore) -> None:
    assert imported(store, GUIDE).count(Change.REGISTERED) == 1
    again = imported(store, GUIDE, PAGER)
    assert (again.count(Change.UNCHANGED), again.count(Change.REGISTERED)) == (1, 1)
    assert [link.id for link in again.written] == ["pager"]
