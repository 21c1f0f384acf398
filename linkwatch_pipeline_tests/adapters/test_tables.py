"""Tables from files: what they say, where, and that hostile ones end soon with a clear word."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.named_file import MAX_BYTES
from linkwatch_pipeline.adapters.tables.reader import read_table
from linkwatch_pipeline.domain.errors import InvalidInput, MissingExtra
from linkwatch_pipeline.domain.tables import MAX_FIELDS, MAX_ROWS, Schema, Table

ALL = (".csv", ".json", ".yaml", ".yml")
SCHEMA = Schema(fields=("link_id", "url", "owner"), required=("link_id", "url"), aliases={"id": "link_id"})
Read = Callable[[str, str | bytes], Table]


def short_id(value: object) -> str | None:
    return value[:20] if isinstance(value, str) else None


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes a file of this name and reads it."""

    def write_and_read(name: str, content: str | bytes) -> Table:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, ALL, otherwise=".txt")

    return write_and_read


def rows(table: Table) -> list[tuple[int, dict[str, str]]]:
    assert table.problems == ()
    assert [row.problems for row in table.rows if row.problems] == []
    return [(row.line, dict(row.cells)) for row in table.rows]


def problems(table: Table) -> list[tuple[int, str, str]]:
    found = [*table.problems, *(problem for row in table.rows for problem in row.problems)]
    return [(problem.line, problem.field, problem.problem) for problem in found]


GUIDE = {"id": "guide", "url": "https://docs.example.com/a,b", "confirm": "2"}
PIP = {"id": "pip", "url": "https://pip.example.com/"}


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", 'id,url,confirm\nguide,"https://docs.example.com/a,b",2\npip,https://pip.example.com/,\n', (2, 3)),
        (
            "a.CSV",
            '\ufeffid;url;confirm\r\n\r\nguide;"https://docs.example.com/a,b";2\r\n;;\r\npip;https://pip.example.com/;',
            (3, 5),
        ),
        (
            "a.csv",
            "id\turl\tconfirm\t\t\nguide\thttps://docs.example.com/a,b\t2\t\t\npip\thttps://pip.example.com/\t",
            (2, 3),
        ),
        (
            "a.json",
            '[\n {"id": "guide",\n  "url": "https://docs.example.com/a,b", "confirm": 2},'
            '\n\n {"id": "pip", "url": "https://pip.example.com/", "confirm": null}]\n',
            (2, 5),
        ),
        (
            "a.json",
            '{"links": [{"id": "guide", "url": "https://docs.example.com/a,b", "confirm": "2"},\n'
            '{"id": "pip", "url": "https://pip.example.com/", "confirm": " "}]}',
            (1, 2),
        ),
        (
            "a.yaml",
            "# ours\n- id: guide\n  url: https://docs.example.com/a,b\n  confirm: 2\n"
            "- {id: 'pip', url: \"https://pip.example.com/\", confirm: null}\n",
            (2, 5),
        ),
        (
            "a.yml",
            "---\nlinks:\n  - id: guide\n    url: >-\n      https://docs.example.com/a,b\n    confirm: '2'\n"
            "  - id: pip\n    url: https://pip.example.com/\n    confirm:\n",
            (3, 7),
        ),
    ],
)
def test_every_format_gives_the_same_rows_with_their_lines(
    read: Read, name: str, content: str, lines: tuple[int, int]
) -> None:
    assert rows(read(name, content)) == [(lines[0], GUIDE), (lines[1], PIP)]


def test_a_list_of_urls_has_a_row_for_each_line_that_is_not_blank(read: Read) -> None:
    table = read("urls.txt", "https://a.example.com/\r\n\n  https://b.example.com/\nno url")
    assert rows(table) == [
        (1, {"url": "https://a.example.com/"}),
        (3, {"url": "  https://b.example.com/"}),
        (4, {"url": "no url"}),
    ]
    assert rows(read("urls", "https://a.example.com/")) == [(1, {"url": "https://a.example.com/"})]


@pytest.mark.parametrize("empty", ["a.csv", "a.json", "urls.txt"])
def test_a_table_without_rows_is_one(read: Read, empty: str) -> None:
    assert read(empty, {"a.csv": "id,url\n", "a.json": " [ ] ", "urls.txt": "\n"}[empty]).rows == ()


def test_values_are_the_texts_that_stand_there(read: Read) -> None:
    """A spreadsheet would compute the first, YAML would make a boolean, an octal number and a date."""
    assert rows(read("a.csv", 'a,b\n=1+1,"@x\n+y"\n-2,z\n')) == [
        (2, {"a": "=1+1", "b": "@x\n+y"}),
        (4, {"a": "-2", "b": "z"}),
    ]
    assert rows(read("a.yaml", "- {a: no, b: 017, c: 2026-09-28, d: 1e3}")) == [
        (1, {"a": "no", "b": "017", "c": "2026-09-28", "d": "1e3"})
    ]
    assert rows(read("a.json", '[{"a": 1.50, "b": -1e400}]')) == [(1, {"a": "1.50", "b": "-1e400"})]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "id,url\na\nb,c,d\n", [(2, "row", "has 1 cells"), (3, "row", "has 3 cells")]),
        ("a.csv", "id,url,id\n", [(1, "id", "twice")]),
        ("a.json", '[{"id": true,\n"url": ["x"]},\n 7, [1], null]', [
            (1, "id", "is true"), (1, "url", "a list"),
            (3, "row", "a single value"), (3, "row", "a list"), (3, "row", "null"),
        ]),
        ("a.json", '[{"id": "a", "id": "b", "u\\u001bl": {}}]', [(1, "id", "twice"), (1, "'u\\x1bl'", "an object")]),
        ("a.yaml", "- id: a\n  id: b\n- id: [x, {y: z}]\n  url: !!str x\n- 7\n- &x {id: c}\n- *x\n- id: *x\n", [
            (2, "id", "twice"), (3, "id", "a list"), (4, "url", "a tagged value"), (5, "row", "a single value"),
            (7, "row", "an alias"), (8, "id", "an alias"),
        ]),
        ("a.yaml", "- {" + ", ".join(f"k{n}: 1" for n in range(MAX_FIELDS + 1)) + "}", [(1, "row", "more than")]),
        ("a.json", "[{" + ", ".join(f'"k{n}": 1' for n in range(MAX_FIELDS + 1)) + "}]", [(1, "row", "21 fields")]),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_by_line_and_field_and_the_rest_is_read(
    read: Read, name: str, content: str, expected: list[tuple[int, str, str]]
) -> None:
    found = problems(read(name, content))
    assert [(line, field) for line, field, _ in found] == [(line, field) for line, field, _ in expected]
    for (_, _, problem), (_, _, words) in zip(found, expected, strict=True):
        assert words in problem


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.csv", 'id,url\n"a\nb,c\n', 2, "not CSV"),
        ("a.csv", 'id,url\nx,"a"b\n', 2, "not CSV"),
        ("a.csv", b"id,url\nx,y\nx,\xff\n", 3, "UTF-8"),
        ("a.csv", "id,url\nx,y".encode("utf-16"), 1, "UTF-8"),
        ("a.txt", "a\nb\0", 2, "NUL"),
        ("a.json", '[{"id": "a"},\n{"id": }]', 2, "not JSON"),
        ("a.json", '[{"id": "a"}\n{"id": "b"}]', 1, "missing"),
        ("a.json", '[{"id": "a"}', 1, "missing"),
        ("a.json", '[{"id": "a"},]', 1, "not JSON"),
        ("a.json", '[{"id": NaN}]', 1, "no number"),
        ("a.json", '[]\n7', 2, "more after"),
        ("a.json", '{"links": [], "more": 1}', 1, "than 'links'"),
        ("a.json", '\n{"link": []}', 2, "not a list"),
        ("a.json", "", 1, "not a list"),
        ("a.yaml", "", 1, "no list"),
        ("a.yaml", "id: a", 1, "not a list"),
        ("a.yaml", "links: []\nmore: 1", 2, "than 'links'"),
        ("a.yaml", "- id: a\n---\n- id: b", 2, "second document"),
        ("a.yaml", "- id: a\n  url: 'x", 2, "not YAML"),
        ("a.yaml", "- id: a\n  ? [x]\n  : y", 2, "name is not a text"),
        ("a.yaml", "- id: a\n- id: \x1b", 2, "control character"),
        ("a.yaml", "%YAML 1.2\n---\n- id: a", 1, "directive"),
        ("a.yaml", "- id: " + "[" * 21 + "]" * 21, 1, "nested too deeply"),
        ("a.csv", "id,url\n" + "a,b\n" * (MAX_ROWS + 1), MAX_ROWS + 2, "more than 10000 rows"),
        ("a.json", "[" + "1,\n" * MAX_ROWS + "1]", MAX_ROWS + 1, "more than 10000 rows"),
        ("a.yaml", "- 1\n" * (MAX_ROWS + 1), MAX_ROWS + 1, "more than 10000 rows"),
        ("a.txt", "a\n" * (MAX_ROWS + 1), MAX_ROWS + 1, "more than 10000 rows"),
    ],
    ids=short_id,
)  # fmt: skip
def test_what_is_no_table_is_refused_with_its_line(
    read: Read, name: str, content: str | bytes, line: int, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        read(name, content)
    assert refused.value.field.endswith(f"{name}:{line}")


FULL = MAX_BYTES - 1000


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", lambda: "[" * FULL),
        ("a.json", lambda: '[{"a":' * (FULL // 6)),
        ("a.json", lambda: '{"links":' + " " * FULL),
        ("a.csv", lambda: 'id,url\n"' + "x" * FULL),
        ("a.csv", lambda: "id,url\n" + "x" * FULL),
        ("a.yaml", lambda: "[" * FULL),
        ("a.yaml", lambda: "- " * (FULL // 2)),
        ("a.yaml", lambda: "- a: " + "{a: " * (FULL // 4)),
        ("a.yaml", lambda: "".join(f"%TAG !a{n}! x\n" for n in range(300_000)) + "--- []"),
        ("a.yaml", lambda: "- &a0 [x]\n" + "".join(f"- &a{n} {[f'*a{n - 1}'] * 9}\n" for n in range(1, 9)) + "&"),
        ("a.yaml", lambda: "- a: '" + "x\n" * (FULL // 2)),
    ],
    ids=short_id,
)  # fmt: skip
def test_hostile_files_are_refused_soon(read: Read, name: str, content: Callable[[], str]) -> None:
    with pytest.raises(InvalidInput):
        read(name, content())


@pytest.mark.timeout(30)
def test_hostile_rows_are_told_in_few_words(read: Read) -> None:
    numbers = read("a.json", '[{"confirm": ' + "9" * FULL + "}]")
    assert len(numbers.rows[0].cells["confirm"]) == FULL
    crowd = read("a.json", "[{" + ",".join(f'"k{n}":true' for n in range(300_000)) + "}]")
    assert [(line, field) for line, field, _ in problems(crowd)] == [(1, "row")]
    wide = SCHEMA.read(read("a.csv", ",".join(f"x{n}" for n in range(500_000))))
    assert len(problems(wide)) < 50
    bomb = read("a.yaml", "- &a [x, x]\n" + "".join("- &a [*a, *a, *a, *a]\n" for _ in range(40)))
    assert len(problems(bomb)) == 41


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "one-line.csv"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="larger than 5 MB"):
            read_table(path, ALL)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 3 * MAX_BYTES


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for name, words in [
        ("pipe.csv", "not a regular file"),
        ("folder.csv", "Is a directory"),
        ("loop.csv", "cannot be read"),
        ("nowhere.csv", "No such file"),
        ("notes.md", "its ending does not say"),
        ("n\0.csv", "cannot be read"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            read_table(tmp_path / name, ALL)


def test_yaml_without_its_library_names_the_extra(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match=r"linkwatch-pipeline\[scan\]"):
        read("a.yaml", "- id: a")
    assert rows(read("a.json", '[{"id": "a"}]')) == [(1, {"id": "a"})]


class TestNames:
    def test_they_are_matched_without_case_and_by_their_other_names(self, read: Read) -> None:
        table = SCHEMA.read(read("a.csv", "ID, Url ,OWNER\na,b,c\n"))
        assert rows(table) == [(2, {"link_id": "a", "url": "b", "owner": "c"})]

    def test_a_header_is_judged_once(self, read: Read) -> None:
        table = SCHEMA.read(read("a.csv", "\nlinkid,Owner,owner\na,b,c\nd,e,f\n"))
        assert problems(table) == [
            (2, "linkid", "unknown column. Did you mean link_id?"),
            (2, "owner", "owner is given twice"),
            (2, "link_id", "there is no column 'link_id'"),
            (2, "url", "there is no column 'url'"),
        ]

    def test_a_row_that_names_its_fields_is_judged_alone(self, read: Read) -> None:
        table = SCHEMA.read(
            read("a.json", '[{"id": "a", "link_id": "b", "u": "c"},\n {"id": 1, "xyzzy": 2}, {"id": []}]')
        )
        assert problems(table) == [
            (1, "link_id", "link_id is given twice"),
            (1, "u", "unknown field. Known are link_id, url, owner."),
            (1, "url", "is missing"),
            (2, "xyzzy", "unknown field. Known are link_id, url, owner."),
            (2, "url", "is missing"),
            (2, "id", "is a list and not a text"),
            (2, "url", "is missing"),
        ]

    def test_a_blank_cell_is_missing(self, read: Read) -> None:
        assert problems(SCHEMA.read(read("a.csv", "id,url\na, \n"))) == [(2, "url", "is missing")]
