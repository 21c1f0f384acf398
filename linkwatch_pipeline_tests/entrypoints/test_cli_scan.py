"""`linkwatch scan`: what a person types, and what comes of it (ARCHITECTURE 6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

NEW_OWNER = ("--owner", "docs", "--notify", "docs@example.com")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "b.md").write_text("[x](https://b.example.com/x) http://localhost/y <a@example.com>\n")
    (folder / "a.md").write_text("\nhttps://b.example.com/x https://a.example.com\n")
    return folder


def test_a_dry_run_shows_what_is_found_and_makes_no_home(terminal: Terminal, book: Path) -> None:
    said = terminal.fine("scan", str(book), "--dry-run", "--json")
    assert said.document == [
        {"url": "https://a.example.com/", "places": [{"file": "a.md", "line": 2}]},
        {
            "url": "https://b.example.com/x",
            "places": [{"file": "a.md", "line": 2}, {"file": "b.md", "line": 1}],
        },
    ]
    assert said.err.splitlines() == [
        "b.md:1: skipped http://localhost/y: 'localhost' is not a name of the public Internet",
        "2 URLs in 3 places of 2 files; 1 skipped",
        "not checked: 1 mail addresses",
    ]
    assert not terminal.home.exists()


def test_a_scan_registers_and_its_json_is_that_of_a_dry_run(terminal: Terminal, book: Path) -> None:
    assert terminal.fine("scan", str(book), *NEW_OWNER).out == "2 registered\n"
    links = terminal.fine("links", "--json").document
    assert [(link["url"], link["owner"]) for link in links] == [
        ("https://a.example.com/", "docs"),
        ("https://b.example.com/x", "docs"),
    ]
    assert links[1]["places"] == [{"file": "a.md", "line": 2}, {"file": "b.md", "line": 1}]
    again = terminal.fine("scan", str(book), "--owner", "docs", "--json").document
    assert again == terminal.fine("scan", str(book), "--dry-run", "--json").document


def test_prune_retires_what_is_gone(terminal: Terminal, book: Path) -> None:
    terminal.fine("scan", str(book), *NEW_OWNER)
    (book / "a.md").write_text("nothing\n")
    said = terminal.fine("scan", str(book), "--owner", "docs", "--prune")
    assert said.out == "1 updated, 1 retired\n"
    assert "not read by this scan" not in said.err


def test_links_of_files_that_a_pruning_scan_did_not_read_are_pointed_out(
    terminal: Terminal, book: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("https://docs.example.com/x\n")
    terminal.fine("scan", str(book), str(other), *NEW_OWNER)
    said = terminal.fine("scan", str(book), "--owner", "docs", "--prune")
    assert f"links were retired that stood in {other}/x.md, not read by this scan" in said.err
    assert "1 revived" in terminal.fine("scan", str(book), str(other), "--owner", "docs", "--prune").out


def test_a_map_says_whose_files_are_whose(terminal: Terminal, book: Path, tmp_path: Path) -> None:
    owners = tmp_path / "owners"
    owners.write_text("* docs\n/b.md ops\n")
    assert "there is no owner 'docs'" in terminal.refused("scan", str(book), "--owners", str(owners))
    terminal.fine("owner", "docs", "docs@example.com")
    terminal.fine("owner", "ops", "ops@example.com")
    terminal.fine("scan", str(book), "--owners", str(owners))
    assert [link["owner"] for link in terminal.fine("links", "--json").document] == ["docs", "docs"]


def test_a_map_is_read_within_bounds(terminal: Terminal, book: Path, tmp_path: Path) -> None:
    owners = tmp_path / "owners"
    owners.write_text("/a.md docs\n", encoding="utf-8-sig")
    assert "there is no owner 'docs'" in terminal.refused("scan", str(book), "--owners", str(owners))
    owners.write_bytes(b"* docs\n\xff ops\n")
    assert "owners:2: this is not UTF-8" in terminal.refused("scan", str(book), "--owners", str(owners))
    assert "larger than 5 MB" in terminal.refused("scan", str(book), "--owners", "/dev/zero")
    assert "No such file" in terminal.refused("scan", str(book), "--owners", str(tmp_path / "absent"))


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_listed(terminal: Terminal, book: Path) -> None:
    (book / "c.md").write_bytes(b"PK\x03\x04\0\0")
    said = terminal.run("scan", str(book), "--dry-run", "--json")
    assert said.code == 1
    assert len(said.document) == 2
    assert "c.md: a binary file: it holds NUL bytes" in said.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "--owner TEAM, or --owners FILE"),
        (("--owner", "docs", "--owners", "x"), "exclude each other"),
        (("--dry-run", "--notify", "a@example.com"), "--notify is the address of --owner"),
        (("--dry-run", "--include", "("), "include: '(' is not a regular expression"),
        (("--dry-run", "--base-url", "x"), "base-url: 'x' is refused"),
        (("--owner", "docs"), "there is no owner 'docs'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    terminal: Terminal, book: Path, arguments: tuple[str, ...], problem: str
) -> None:
    assert problem in terminal.refused("scan", str(book), *arguments)


def test_a_path_that_is_not_there_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    assert "PATH: there is no" in terminal.refused("scan", str(tmp_path / "no"), "--dry-run")


def test_the_name_of_a_file_cannot_pass_for_a_line_of_ours(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "a\nb: fine\x1b.md").write_text("http://localhost/\n")
    said = terminal.fine("scan", str(tmp_path), "--dry-run")
    assert said.err.startswith("a\\nb: fine\\x1b.md:1: skipped http://localhost/")
