"""A history in a file: from one store to another and back, unchanged, and refused unless it is whole."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.store import history_file
from linkwatch_pipeline.adapters.store.history_file import check_history, read_history, write_history
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.domain.links import Owner, Place
from linkwatch_pipeline.ports import Store, StoredRecord
from linkwatch_pipeline.use_cases.move_history import everything
from linkwatch_pipeline_tests.builders import MONDAY, a_link, an_observation
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.tables import make_table, open_store
from linkwatch_pipeline_tests.contracts.histories import live_through

OWNERS = [Owner(team="docs", address="docs@example.com"), Owner(team="sré", address="sre@example.com")]


def move(source: Store, target: Store, file: Path) -> int:
    """Export one store into a file and import that into the other one; how many records."""
    written = write_history(file, everything(source), source=file.name)
    assert target.restore(read_history(file), source=check_history(file)) == written
    return written


def there_and_back(cloud: Cloud, folder: Path, *, weeks: int, links: int) -> None:
    first = SqliteStore.open(folder / "first.sqlite3")
    table = open_store(cloud, make_table(cloud))
    last = SqliteStore.open(folder / "last.sqlite3")
    live_through(first, weeks=weeks, links=links)
    records = move(first, table, folder / "there")
    assert move(table, last, folder / "back") == records
    there, back = ((folder / name).read_text().splitlines()[1:-1] for name in ("there", "back"))
    assert there == back
    assert all(one == another for one, another in zip(everything(first), everything(last), strict=True))
    for store in (first, table, last):
        store.close()


def test_weeks_go_from_sqlite_to_dynamodb_and_back_unchanged(ministack: Cloud, tmp_path: Path) -> None:
    there_and_back(ministack, tmp_path, weeks=9, links=7)


@pytest.mark.campaign
def test_a_year_goes_from_sqlite_to_dynamodb_and_back_unchanged(ministack: Cloud, tmp_path: Path) -> None:
    there_and_back(ministack, tmp_path, weeks=52, links=300)


def a_file(folder: Path) -> Path:
    file = folder / "history"
    assert write_history(file, OWNERS, source="one") == 2
    return file


def test_it_names_its_source_and_gives_every_record_back(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    assert check_history(file) == "one"
    assert list(read_history(file)) == OWNERS
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def test_nothing_is_a_history_too(tmp_path: Path) -> None:
    write_history(tmp_path / "empty", [], source="one")
    assert check_history(tmp_path / "empty") == "one"
    assert list(read_history(tmp_path / "empty")) == []


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    before = file.read_bytes()
    with pytest.raises(ConfigurationError, match="there already"):
        write_history(file, OWNERS, source="two")
    assert file.read_bytes() == before


def test_an_export_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def some() -> object:
        yield OWNERS[0]
        raise RuntimeError("the store is gone")

    with pytest.raises(RuntimeError):
        write_history(tmp_path / "history", some(), source="one")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_history(tmp_path / "no" / "history", OWNERS, source="one")


def without_last_line(lines: list[str]) -> list[str]:
    return lines[:-1]


def without_a_record(lines: list[str]) -> list[str]:
    return [lines[0], *lines[2:]]


def with_a_changed_record(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace("docs@", "evil@"), *lines[2:]]


def cut_in_the_middle(lines: list[str]) -> list[str]:
    return [*lines[:2], lines[2][:9]]


def with_another_version(lines: list[str]) -> list[str]:
    return [json.dumps({"linkwatch_history": 2, "source": "one"}), *lines[1:]]


def of_something_else(lines: list[str]) -> list[str]:
    return ["link_id,url,owner"]


def nested_too_deeply(lines: list[str]) -> list[str]:
    return ["[" * 20_000, *lines[1:]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without_last_line, "is cut or was changed"),
        (without_a_record, "is cut or was changed"),
        (with_a_changed_record, "is cut or was changed"),
        (cut_in_the_middle, "is cut"),
        (with_another_version, "version 2"),
        (of_something_else, "not a history"),
        (nested_too_deeply, "not a history"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_file_that_is_not_whole_is_refused(
    tmp_path: Path, change: Callable[[list[str]], list[str]], words: str
) -> None:
    file = a_file(tmp_path)
    file.write_text("\n".join(change(file.read_text().splitlines())) + "\n")
    with pytest.raises(InvalidInput, match=words):
        check_history(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        check_history(tmp_path / "history")


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "MAX_LINE_BYTES", most := 1_000_000)
    file = a_file(tmp_path)
    with file.open("r+b") as opened:  # NULs behind its four lines
        opened.truncate(100 * most)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=r"has a line 5 of more than 64 MB, .*\. Export it again"):
            check_history(file)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4 * most


def test_a_record_that_an_import_would_refuse_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "MAX_LINE_BYTES", 100)
    places = tuple(Place(file="a.md", line=line) for line in range(20))
    with pytest.raises(ConfigurationError, match=r'the record \{"links":\{"id":"guide".* has more than .*--exclude'):
        write_history(tmp_path / "history", [replace(a_link(), places=places)], source="one")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InvalidInput, match="not a regular file"):
            check_history(path)


def test_records_that_a_newer_linkwatch_added_are_named(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    file.write_text('{"linkwatch_history":1,"source":"one"}\n{"moons":{"name":"Io"}}\n')
    with pytest.raises(InvalidInput, match="moons"):
        list(read_history(file))


@pytest.mark.parametrize("record", ['{"links": []}', '{"links": {"id": "\\ud83d"}}'])
def test_a_record_of_a_whole_file_that_is_none_is_refused(tmp_path: Path, record: str) -> None:
    lines = [json.dumps({"linkwatch_history": 1, "source": "one"}), record]
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join([*lines, json.dumps({"end": {"records": 1, "sha256": digest}})]) + "\n")
    with pytest.raises(InvalidInput, match=f"{file} "):
        check_history(file)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([a_link(last_sequence=9_999_999_999)], "has link 'guide' with sequence 9999999999, .* Retire that link"),
        (
            [a_link(), replace(an_observation(a_link()), sequence=10_000_000_000)],
            "observation of link 'guide' with sequence 10000000000",
        ),
    ],
)
def test_a_sequence_that_leaves_no_room_is_refused_before_anything_is_written(
    tmp_path: Path, records: list[StoredRecord], words: str
) -> None:
    write_history(tmp_path / "history", records, source="one")
    with pytest.raises(InvalidInput, match=words):
        check_history(tmp_path / "history")


def test_high_sequences_that_leave_room_and_those_of_retired_links_are_moved(tmp_path: Path) -> None:
    links = [a_link(last_sequence=1_000_000_300), a_link("old", last_sequence=9_999_999_999, retired_at=MONDAY)]
    write_history(tmp_path / "history", links, source="one")
    assert check_history(tmp_path / "history") == "one"
