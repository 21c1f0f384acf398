"""Handbooks as they lie on disk: which files are read, in which order, and what happens to the hostile ones."""

from __future__ import annotations

import io
import os
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.handbook.extract import MAX_FILE_BYTES, Extracted, extract_links
from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
from linkwatch_pipeline.adapters.handbook.worker import Extract, Worker
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.handbook import ReadFile

LINK = "https://a.example.com/x\n"


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read(*paths: Path, include: str | None = None, exclude: str | None = None, seconds: float = 100) -> list[ReadFile]:
    reader = HandbookReader(file_deadline=timedelta(seconds=seconds), match_deadline=timedelta(seconds=seconds))
    return list(reader.read(paths, include=include, exclude=exclude))


def names(files: list[ReadFile]) -> list[str]:
    return [file.file for file in files]


def test_folders_are_walked_in_order_and_only_scanned_kinds_are_read(tmp_path: Path) -> None:
    kinds = ("b.md", "B.MD", "a/z.markdown", "a/b/c.html", "a.rst", "c.txt", "d.csv", "sitemap.xml", "sitemap-2.XML")
    others = ("x.py", "README", ".git/x.md", "a/.hidden/x.md", "other.xml", "i.png")
    put(tmp_path, dict.fromkeys([*kinds, *others], LINK))
    assert names(read(tmp_path)) == sorted(kinds, key=lambda name: name.split("/"))


def test_a_file_is_named_by_its_path_under_path(tmp_path: Path) -> None:
    put(tmp_path, {"one/a.md": LINK, "two/a.md": LINK})
    assert names(read(tmp_path / "one")) == ["a.md"]
    assert names(read(tmp_path / "one" / "a.md")) == ["a.md"]
    both = names(read(tmp_path / "one", tmp_path / "two" / "a.md", tmp_path / "one" / "a.md"))
    assert both == [f"{tmp_path}/one/a.md", f"{tmp_path}/two/a.md"]


def test_include_and_exclude_look_at_the_path_under_path(tmp_path: Path) -> None:
    put(tmp_path / "docs", {"a.md": LINK, "old/b.md": LINK, "old/c.txt": LINK})
    assert names(read(tmp_path / "docs", include=r"^old/")) == ["old/b.md", "old/c.txt"]
    assert names(read(tmp_path / "docs", exclude=r"^old/")) == ["a.md"]
    assert names(read(tmp_path / "docs", include=r"\.md$", exclude="b")) == ["a.md"]
    assert names(read(tmp_path / "docs", include="docs")) == []


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="PATH: there is no"):
        read(tmp_path / "no")


def test_a_file_of_another_kind_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    put(tmp_path, {"a.pdf": b"%PDF"})
    (only,) = read(tmp_path / "a.pdf")
    assert only.problem == "not a kind of file that is scanned"


@pytest.mark.parametrize(("pattern", "problem"), [("(", "is not a regular expression"), ("(a+)+$", "takes too long")])
@pytest.mark.parametrize("field", ["include", "exclude"])
def test_an_expression_that_is_wrong_or_backtracks_is_refused(
    tmp_path: Path, field: str, pattern: str, problem: str
) -> None:
    put(tmp_path, {f"{'a' * 60}.md": LINK})
    with pytest.raises(InvalidInput, match=f"^{field}: .*{problem}"):
        read(tmp_path, seconds=1, **{field: pattern})


def test_files_that_cannot_be_read_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", b"\0" * 1_000_000)
    put(
        tmp_path,
        {
            "binary.md": LINK.encode() + b"\0",
            "bomb.md": bomb.getvalue(),
            "good.md": LINK,
            "latin.md": LINK.encode() + "caf\u00e9 https://b.example.com/\u00e9\n".encode("latin-1"),
            "sitemap.xml": "<urlset>",
        },
    )
    with (tmp_path / "huge.md").open("wb") as huge:
        huge.truncate(100 * MAX_FILE_BYTES)
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "self.md").symlink_to("self.md")
    (tmp_path / "broken.md").symlink_to("nowhere.md")
    files = {file.file: file for file in read(tmp_path)}
    problems = {name: file.problem for name, file in files.items() if file.problem is not None}
    assert problems == {
        "binary.md": "a binary file: it holds NUL bytes",
        "bomb.md": "a binary file: it holds NUL bytes",
        "broken.md": "cannot be read: No such file or directory",
        "huge.md": "too large: 500,000,000 bytes, at most 5,000,000 are read",
        "latin.md": "not UTF-8 (line 2); read as Latin-1, letters beyond ASCII may be wrong",
        "pipe.md": "not a regular file",
        "self.md": "cannot be read: Too many levels of symbolic links",
        "sitemap.xml": "not well-formed XML: no element found: line 1, column 8",
    }
    assert [link.text for link in files["good.md"].links] == ["https://a.example.com/x"]
    assert [link.text for link in files["latin.md"].links] == [
        "https://a.example.com/x",
        "https://b.example.com/\u00e9",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": LINK, "closed/b.md": LINK})
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "closed").chmod(0)
    files = read(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert [(file.file, file.problem) for file in files] == [
        ("a.md", "cannot be read: Permission denied"),
        ("closed", "cannot be read: Permission denied"),
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    put(tmp_path, {"a.md": f"caf\u00e9\n{LINK}".encode(encoding)})
    (only,) = read(tmp_path)
    assert only.problem is None
    assert [(link.line, link.text) for link in only.links] == [(2, "https://a.example.com/x")]


def test_links_to_folders_and_out_of_the_handbook_are_not_followed(tmp_path: Path) -> None:
    book = put(tmp_path / "book", {"a.md": LINK, "sub/b.md": LINK})
    put(tmp_path, {"secret.md": LINK})
    (book / "sub" / "loop").symlink_to(book)
    (book / "out.md").symlink_to(tmp_path / "secret.md")
    (book / "same.md").symlink_to("a.md")
    files = read(book)
    assert names(files) == ["a.md", "out.md", "same.md", "sub/b.md", "sub/loop"]
    assert {file.file: file.passed for file in files if file.passed is not None} == {
        "out.md": "a link to a file outside of the folder",
        "sub/loop": "a link to a folder, which is not followed",
    }


def test_a_name_that_is_not_utf_8_is_shown_escaped(tmp_path: Path) -> None:
    put(tmp_path, {os.fsdecode(b"caf\xe9.md"): LINK})
    assert names(read(tmp_path)) == ["caf\\xe9.md"]


HOSTILE = {
    "one-line.md": "word " * 900_000 + LINK,
    "brackets.md": "[" * 3_000 + f"]({LINK.strip()})" * 50,
    "lists.md": "".join(f"{' ' * (2 * depth)}- x\n" for depth in range(1_000)),
    "quotes.md": ">" * 10_000 + LINK,
    "tags.md": "<div>" * 10_000 + f'<a href="{LINK.strip()}">',
    "tags.html": "<div>" * 100_000 + f'<a href="{LINK.strip()}">',
    "unclosed.html": "<a href='" * 100_000,
    "comments.html": "<!--" * 100_000,
    "templates.md": "{%" * 100_000 + "{{" * 100_000,
    "parentheses.txt": LINK.strip() + ")" * 1_000_000,
    "entities.html": '<a href="&#' + "9" * 1_000_000 + ';">',
    "quotes.csv": '"' * 1_000_001,
    "deep.rst": "".join(f"{' ' * (2 * depth)}* x\n\n" for depth in range(400)),
    "sitemap.xml": "<a>" * 100_000,
}


class HurriedReader(HandbookReader):
    """Has patience with every file but one, so that a slow machine fails no other."""

    def _extract(self, worker: Worker, question: Extract) -> Extracted:
        hurried = HandbookReader(file_deadline=timedelta(seconds=1 if question.path.name == "slow.rst" else 100))
        return HandbookReader._extract(hurried, worker, question)


def test_hostile_files_end_in_time_and_harm_nothing(tmp_path: Path) -> None:
    put(tmp_path, {**HOSTILE, "slow.rst": "*a " * 120_000, "z-good.md": LINK})
    files = {file.file: file for file in HurriedReader().read([tmp_path], include=None, exclude=None)}
    assert set(files) == {*HOSTILE, "slow.rst", "z-good.md"}
    assert files["slow.rst"].problem == "takes more than 1 s to read"
    for deep in ("brackets.md", "lists.md", "quotes.md"):
        assert files[deep].problem == "nested more than 100 deep; what lies deeper was not read"
    for whole in ("one-line.md", "tags.md", "tags.html", "parentheses.txt"):
        assert (files[whole].problem, len(files[whole].links)) == (None, 1), whole
    assert [link.text for link in files["z-good.md"].links] == ["https://a.example.com/x"]


def test_a_file_that_eats_all_memory_leaves_none_of_the_others_without(tmp_path: Path) -> None:
    put(tmp_path, {"a-eats.rst": "".join(f"{' ' * depth}a\n\n" for depth in range(2000)), "b.rst": LINK, "c.md": LINK})
    eats, *others = read(tmp_path, seconds=60)
    assert eats.problem == "needs too much memory to be read"
    assert [(file.problem, len(file.links)) for file in others] == [(None, 1), (None, 1)]


def test_a_folder_too_deep_for_the_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a.md": LINK})
    monkeypatch.chdir(tmp_path)
    for _ in range(22):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    *_, good = sorted(files := read(tmp_path), key=lambda file: file.problem is None)
    assert (good.file, len(files)) == ("a.md", 2)
    assert [file.problem for file in files if file.file != "a.md"] == ["cannot be read: its path is too long"]


def test_the_fault_of_a_parser_is_said_of_its_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise KeyError("a fault of docutils")

    put(tmp_path, {"a.rst": LINK})
    monkeypatch.setattr("linkwatch_pipeline.adapters.handbook.rst.publish_doctree", faulty)
    assert extract_links(tmp_path / "a.rst", "rst").problem == "the parser failed on it (KeyError)"


def test_the_handbook_cannot_bring_its_own_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan is often run inside the handbook; what lies there must not be imported."""
    put(tmp_path, {"a.md": LINK, "csv.py": "raise SystemExit", "markdown_it/__init__.py": "raise SystemExit"})
    monkeypatch.chdir(tmp_path)
    (only,) = read(Path("."))
    assert (only.problem, len(only.links)) == (None, 1)
