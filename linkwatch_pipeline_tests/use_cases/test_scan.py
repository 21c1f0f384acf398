"""Scanning a handbook and registering what it holds (SPEC 6, ARCHITECTURE 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, PublicPolicy
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.handbook import (
    Aside,
    FileProblem,
    FoundLink,
    FoundUrl,
    ReadFile,
    ScanResult,
    scanned_link_id,
)
from linkwatch_pipeline.domain.links import Link, Owner, Place
from linkwatch_pipeline.domain.owner_map import OwnerMap, everything_of, parse_owner_map
from linkwatch_pipeline.domain.scanned_links import ScanChange
from linkwatch_pipeline.domain.tables import Table, TableRow
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.import_links import import_links
from linkwatch_pipeline.use_cases.register import Change, register_link, retire_link, update_link
from linkwatch_pipeline.use_cases.scan import JudgeAddress, ScanSummary, register_scan, scan_paths
from linkwatch_pipeline_tests.builders import MONDAY, after, an_observation

A, B, C = (f"https://docs.example.com/{name}" for name in "abc")
DOCS = everything_of("docs")
PUBLIC = PublicPolicy().judge_address


class Book:
    """A handbook in memory: file -> references, one a line."""

    def __init__(self, **files: Sequence[str]) -> None:
        self.files = {f"{name}.md": references for name, references in files.items()}

    def read(self, paths: Sequence[Path], *, include: str | None, exclude: str | None) -> Iterator[ReadFile]:
        for file, references in self.files.items():
            links = tuple(FoundLink(text=text, line=line) for line, text in enumerate(references, start=1))
            yield ReadFile(file=file, links=links)


def scanned(book: Book, *, base_url: str | None = None, judge_address: JudgeAddress = PUBLIC) -> ScanResult:
    return scan_paths([Path("book")], base_url=base_url, reader=book, judge_address=judge_address)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    for team in ("docs", "ops"):
        opened.put_owner(Owner(team=team, address=f"{team}@example.com"))
    yield opened
    opened.close()


def register(
    store: Store, book: Book, *, owners: OwnerMap = DOCS, prune: bool = False, weeks: int = 0, notify: str | None = None
) -> ScanSummary:
    return register_scan(store, scanned(book), owners=owners, notify=notify, now=after(days=7 * weeks), prune=prune)


def link_of(store: Store, url: str) -> Link:
    (link,) = [link for link in store.links() if link.url == url]
    return link


def places_of(store: Store, url: str) -> list[str]:
    return [f"{place.file}:{place.line}" for place in link_of(store, url).places]


def test_one_url_is_found_once_with_all_its_places() -> None:
    book = Book(b=[A, "HTTPS://Docs.Example.com:443/a#x"], a=["x", A, A])
    (found,) = scanned(book).found
    places = (("a.md", 2), ("a.md", 3), ("b.md", 1), ("b.md", 2))
    assert found == FoundUrl(url=A, places=tuple(Place(file=file, line=line) for file, line in places))


def test_urls_are_sorted_and_asides_counted() -> None:
    result = scanned(Book(a=[B, A, "mailto:x@example.com", "tel:1", "#x", "", "b.md", "ftp://x", "mailto:y"]))
    assert [found.url for found in result.found] == [A, B]
    asides = {Aside.MAIL: 2, Aside.PHONE: 1, Aside.ANCHOR: 2, Aside.RELATIVE: 1, Aside.OTHER_SCHEME: 1}
    assert (result.asides, result.skipped) == (asides, ())


def test_relative_links_are_taken_with_a_base_url_only() -> None:
    book = Book(a=["b.md", "/top", "#x", A])
    book.files = {"pages/a b.md": book.files["a.md"]}
    assert [found.url for found in scanned(book).found] == [A]
    urls = [found.url for found in scanned(book, base_url="https://book.example.com/en").found]
    assert urls == ["https://book.example.com/en/pages/b.md", "https://book.example.com/top", A]
    with pytest.raises(InvalidInput, match="base-url"):
        scanned(book, base_url="book.example.com")


def test_what_is_skipped_has_a_place_and_a_reason_and_no_password() -> None:
    references = ["http://localhost:8080", "http://10.0.0.1/x", "http://me:secret@a.example.com/", "https://x/{y}"]
    result = scanned(Book(a=[*references, "http://8.8.8.8/"]))
    assert [found.url for found in result.found] == ["http://8.8.8.8/"]
    assert [(skipped.line, skipped.text) for skipped in result.skipped] == [
        (1, "http://localhost:8080"),
        (2, "http://10.0.0.1/x"),
        (3, "http://\u2026@a.example.com/"),
        (4, "https://x/{y}"),
    ]
    for skipped, word in zip(result.skipped, ("public", "public", "credentials", "template"), strict=True):
        assert word in skipped.reason


def test_a_fixture_home_takes_its_own_fixtures() -> None:
    policy = FixturePolicy([("127.0.0.1", 8765)])
    book = Book(a=["http://127.0.0.1:8765/x", "http://127.0.0.1:9999/x"])
    assert [found.url for found in scanned(book, judge_address=policy.judge_address).found] == [
        "http://127.0.0.1:8765/x"
    ]


def test_a_file_that_was_read_in_part_is_a_problem_and_its_links_count() -> None:
    class Partly(Book):
        def read(self, paths: Sequence[Path], *, include: str | None, exclude: str | None) -> Iterator[ReadFile]:
            yield ReadFile(file="a.md", links=(FoundLink(text=A, line=1),), problem="not UTF-8")
            yield ReadFile(file="b.md", problem="too large")
            yield ReadFile(file="c.md", passed="a link to a folder")

    result = scanned(Partly())
    assert [found.url for found in result.found] == [A]
    assert [(problem.file, problem.problem) for problem in result.problems] == [
        ("a.md", "not UTF-8"),
        ("b.md", "too large"),
    ]
    assert (result.files, [passed.file for passed in result.passed]) == (("a.md",), ["c.md"])


def test_a_scan_registers_under_stable_ids_and_repeats_itself_quietly(store: Store) -> None:
    book = Book(a=[A, B])
    assert register(store, book).ids == {ScanChange.REGISTERED: tuple(sorted(map(scanned_link_id, (A, B))))}
    before = list(store.links())
    assert [(link.id, link.owner, link.host) for link in before] == [
        (scanned_link_id(link.url), "docs", "docs.example.com") for link in before
    ]
    assert register(store, book, weeks=1, prune=True).ids == {
        ScanChange.UNCHANGED: tuple(sorted(map(scanned_link_id, (A, B))))
    }
    assert list(store.links()) == before


def test_a_url_that_is_watched_already_keeps_its_id_history_and_configuration(store: Store) -> None:
    link = register_link(store, link_id="guide", url=A, owner="docs", marker="guide-v1", now=MONDAY).link
    store.record(an_observation(link, 404, marker_found=None), default_confirm=1, now=MONDAY)
    before = link_of(store, A)
    assert register(store, Book(a=[A]), weeks=1).ids == {ScanChange.UPDATED: ("guide",)}
    assert link_of(store, A) == replace(before, places=(Place(file="a.md", line=1, scanned_for="docs"),))


def test_moved_places_are_updated(store: Store) -> None:
    register(store, Book(a=[A], b=[A]))
    assert register(store, Book(c=[B, A])).count(ScanChange.UPDATED) == 1
    assert places_of(store, A) == ["c.md:2"]


def test_vanished_urls_are_retired_with_prune_only_and_come_back(store: Store) -> None:
    register(store, Book(a=[A, B]))
    store.record(an_observation(link_of(store, B), 404), default_confirm=1, now=MONDAY)
    before = link_of(store, B)
    assert register(store, Book(a=[A]), weeks=1).count(ScanChange.RETIRED) == 0
    assert link_of(store, B) == before
    assert register(store, Book(a=[A]), weeks=2, prune=True).ids[ScanChange.RETIRED] == (before.id,)
    retired = link_of(store, B)
    assert retired == replace(before, retired_at=after(days=14), config_version=2, places=())
    assert register(store, Book(a=[A]), weeks=3, prune=True).count(ScanChange.RETIRED) == 0
    assert register(store, Book(a=[A, B]), weeks=4).ids[ScanChange.REVIVED] == (before.id,)
    revived = replace(before, active_since=after(days=28), config_version=3)
    assert link_of(store, B) == revived
    assert len(list(store.observations(link_id=before.id))) == 1


def test_a_link_that_was_registered_by_hand_is_never_pruned(store: Store) -> None:
    register_link(store, link_id="guide", url=B, owner="docs", now=MONDAY)
    register(store, Book(a=[A]), prune=True)
    assert link_of(store, B).retired_at is None


def test_a_link_that_was_retired_by_hand_stays_retired(store: Store) -> None:
    register(store, Book(a=[A]))
    retire_link(store, link_id=scanned_link_id(A), now=after(days=1))
    assert register(store, Book(a=[A]), weeks=1).count(ScanChange.LEFT_RETIRED) == 1
    assert link_of(store, A).retired_at == after(days=1)


def test_a_link_that_people_registered_and_retired_stays_retired_too(store: Store) -> None:
    register_link(store, link_id="guide", url=A, owner="docs", now=MONDAY)
    retire_link(store, link_id="guide", now=after(days=1))
    assert register(store, Book(a=[A]), weeks=1).count(ScanChange.LEFT_RETIRED) == 1


def test_a_link_that_another_team_brings_back_is_that_teams(store: Store) -> None:
    register(store, Book(a=[A, B]))
    register(store, Book(a=[B]), weeks=1, prune=True)
    assert register(store, Book(x=[A]), owners=everything_of("ops"), weeks=2).count(ScanChange.REVIVED) == 1
    assert (link_of(store, A).owner, link_of(store, A).also_used_by, places_of(store, A)) == ("ops", (), ["x.md:1"])


def test_all_teams_of_a_map_without_an_address_are_named_together(store: Store) -> None:
    owners = parse_owner_map("* docs\n/b.md web\n/c.md sre\n")
    with pytest.raises(NotFound, match=r"no owner 'sre', 'web'; .* 'linkwatch owner web ADDRESS'"):
        register(store, Book(a=[A]), owners=owners)
    assert list(store.links()) == []


def test_links_of_a_file_that_could_not_be_read_have_not_vanished(store: Store) -> None:
    register(store, Book(a=[A], b=[B]))
    result = replace(scanned(Book(a=[A])), problems=(FileProblem(file="b.md", problem="too large"),))
    register_scan(store, result, owners=DOCS, now=after(days=7), prune=True)
    assert link_of(store, B).retired_at is None
    unread_folder = replace(scanned(Book(a=[C])), problems=(FileProblem(file=".", problem="cannot be read"),))
    register_scan(store, unread_folder, owners=DOCS, now=after(days=7), prune=True)
    assert link_of(store, A).retired_at is None


def test_a_scan_that_read_nothing_prunes_nothing(store: Store) -> None:
    register(store, Book(a=[A]))
    with pytest.raises(InvalidInput, match="every link would be retired"):
        register(store, Book(), prune=True)
    assert link_of(store, A).retired_at is None


def test_a_map_registers_a_whole_handbook_by_folder(store: Store) -> None:
    owners = parse_owner_map("* docs\n/b.md ops\n")
    register(store, Book(a=[A, B], b=[C, B]), owners=owners)
    assert [(link_of(store, url).owner, link_of(store, url).also_used_by) for url in (A, B, C)] == [
        ("docs", ()),
        ("docs", ("ops",)),
        ("ops", ()),
    ]
    moved = Book(a=[A], b=[C, B])
    assert register(store, moved, owners=owners).count(ScanChange.UPDATED) == 1
    assert (link_of(store, B).owner, places_of(store, B)) == ("docs", ["b.md:2"])  # not without --prune
    register(store, moved, owners=owners, prune=True)
    assert (link_of(store, B).owner, link_of(store, B).also_used_by) == ("ops", ())


def test_a_second_team_is_noted_and_both_handbooks_keep_their_places(store: Store) -> None:
    ops = everything_of("ops")
    register(store, Book(a=[A, B]))
    assert register(store, Book(x=[A]), owners=ops).ids == {ScanChange.UPDATED: (scanned_link_id(A),)}
    shared = link_of(store, A)
    assert (shared.owner, shared.also_used_by, places_of(store, A)) == ("docs", ("ops",), ["a.md:1", "x.md:1"])
    register(store, Book(y=[C]), owners=ops, prune=True)
    assert (link_of(store, A).also_used_by, link_of(store, B).retired_at) == ((), None)
    register(store, Book(x=[A]), owners=ops)
    register(store, Book(a=[B]), prune=True)
    left = link_of(store, A)
    assert (left.owner, left.also_used_by, left.retired_at) == ("ops", (), None)


def test_a_place_in_a_file_that_another_team_deleted_goes_when_that_team_scans_again(store: Store) -> None:
    ops = everything_of("ops")
    register(store, Book(a=[A], b=[A, B]))
    register(store, Book(x=[A], y=[A, C]), owners=ops)
    assert places_of(store, A) == ["a.md:1", "b.md:1", "x.md:1", "y.md:1"]
    register(store, Book(x=[A], z=[C]), owners=ops)
    assert places_of(store, A) == ["a.md:1", "b.md:1", "x.md:1"]
    register(store, Book(b=[B]), prune=True)
    assert (places_of(store, A), link_of(store, A).owner) == (["x.md:1"], "ops")


def test_two_handbooks_may_have_files_of_the_same_name(store: Store) -> None:
    ops = everything_of("ops")
    register(store, Book(index=[A]))
    register(store, Book(index=[B, A]), owners=ops)
    assert places_of(store, A) == ["index.md:1", "index.md:2"]
    for _ in range(2):
        assert register(store, Book(index=[A])).count(ScanChange.UNCHANGED) == 1
        assert register(store, Book(index=[B, A]), owners=ops).count(ScanChange.UNCHANGED) == 2


def test_an_imported_link_is_never_pruned(store: Store) -> None:
    cells = (
        {"link_id": "guide", "url": A, "owner": "docs", "file": "sheet.csv", "line": "4"},
        {"link_id": scanned_link_id(B), "url": B, "owner": "docs", "file": "sheet.csv", "line": "5"},
        {"link_id": "without-places", "url": C, "owner": "docs"},
    )
    table = Table(rows=tuple(TableRow(line=line, cells=row) for line, row in enumerate(cells)), columns=None)
    import_links(store, table, now=MONDAY)
    before = list(store.links())
    other = "https://docs.example.com/other"
    register(store, Book(a=[other]), prune=True)
    assert [link for link in store.links() if link.url != other] == before
    register(store, Book(a=[other, A, B, C]), weeks=1, prune=True)
    assert places_of(store, A) == ["a.md:2", "sheet.csv:4"]
    assert set(import_links(store, table, now=after(days=8)).ids) == {Change.UNCHANGED}
    register(store, Book(a=[other]), weeks=2, prune=True)
    assert [link for link in store.links() if link.url != other] == before


def test_an_id_that_another_url_has_taken_is_not_used(store: Store) -> None:
    register(store, Book(a=[A]))
    update_link(store, link_id=scanned_link_id(A), url=C, now=after(days=1))
    register(store, Book(a=[A]), weeks=1)
    assert link_of(store, A).id == f"{scanned_link_id(A)}-2"
    assert register(store, Book(a=[A]), weeks=2).count(ScanChange.UNCHANGED) == 1


def test_nothing_is_written_for_an_unknown_team_or_a_file_of_nobody(store: Store) -> None:
    with pytest.raises(NotFound, match="'linkwatch owner web ADDRESS'"):
        register(store, Book(a=[A]), owners=everything_of("web"))
    with pytest.raises(InvalidInput, match=r"no line matches 'a\.md'"):
        register(store, Book(a=[A], b=[B]), owners=parse_owner_map("/b.md docs"))
    with pytest.raises(ConflictingContent, match=r"has the address docs@example\.com"):
        register(store, Book(a=[A]), notify="other@example.com")
    assert list(store.links()) == []


def test_a_new_owner_comes_with_its_address(store: Store) -> None:
    register(store, Book(a=[A]), owners=everything_of("web"), notify="web@example.com")
    assert store.get_owner("web") == Owner(team="web", address="web@example.com")
    assert link_of(store, A).owner == "web"


def test_a_link_that_changed_meanwhile_is_read_again(store: Store, tmp_path: Path) -> None:
    register(store, Book(a=[A]))

    class Raced(SqliteStore):
        """Lets somebody else write first, once."""

        raced = False

        def save_registry(
            self, *, owners: Sequence[Owner] = (), links: Sequence[tuple[Link, Link | None]] = ()
        ) -> None:
            if not self.raced:
                self.raced = True
                update_link(store, link_id=links[0][0].id, confirm=2, now=MONDAY)
                with pytest.raises(StaleWrite):
                    super().save_registry(owners=owners, links=links)
                raise StaleWrite("raced")
            super().save_registry(owners=owners, links=links)

    raced = Raced.open(tmp_path / "linkwatch.sqlite3")
    register(raced, Book(b=[A]))
    raced.close()
    assert (link_of(store, A).confirm, places_of(store, A)) == (2, ["b.md:1"])


def test_two_trees_of_one_team_are_pruned_together_and_what_was_lost_comes_back(store: Store) -> None:
    one, two = {"a": [A, B]}, {"x": [A, C]}
    register(store, Book(**one, **two))
    before = list(store.links())
    assert register(store, Book(**one), weeks=1).count(ScanChange.RETIRED) == 0
    assert places_of(store, A) == ["a.md:1"]  # the other tree's is gone, the link stays
    pruned = register(store, Book(**one), weeks=1, prune=True)
    assert (pruned.ids[ScanChange.RETIRED], pruned.files_gone) == ((scanned_link_id(C),), ("x.md",))
    pruned = register(store, Book(a=[A]), weeks=1, prune=True)
    assert (pruned.ids[ScanChange.RETIRED], pruned.files_gone) == ((scanned_link_id(B),), ())
    assert register(store, Book(**one, **two), weeks=2).ids[ScanChange.REVIVED] == tuple(
        sorted((scanned_link_id(B), scanned_link_id(C)))
    )
    assert [(link.id, link.places, link.retired_at) for link in store.links()] == [
        (link.id, link.places, None) for link in before
    ]


def test_ids_are_free_by_one_listing_and_not_asked_for_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise AssertionError("the listing has said it already")

    monkeypatch.setattr(store, "get_link", ask)
    assert len(register(store, Book(a=[A, B])).ids[ScanChange.REGISTERED]) == 2
