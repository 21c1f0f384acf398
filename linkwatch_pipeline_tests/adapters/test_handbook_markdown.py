"""Links in Markdown, with their lines, against a corpus labelled by hand (data/handbook/awkward_markdown.txt)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.handbook.extract import extract_links
from linkwatch_pipeline.adapters.handbook.markdown import markdown_links

CORPUS = Path(__file__).parent.parent / "data" / "handbook" / "awkward_markdown.txt"


def cases() -> list[tuple[str, str, list[tuple[int, str]]]]:
    """(name, text, [(line, address)]) of each case of the corpus; `\\n` in an address is a line end."""
    read = []
    for case in re.split(r"^=== (?=[a-zA-Z])", CORPUS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = case.partition("\n")
        text, _, labels = rest.partition("--- links\n")
        links = [label.split(" ", 1) for label in labels.splitlines() if label]
        read.append((name, text, [(int(line), address.replace("\\n", "\n")) for line, address in links]))
    return read


def found(text: str) -> list[tuple[int, str]]:
    return [(link.line, link.text) for link in markdown_links(text).links]


@pytest.mark.parametrize(("text", "links"), [pytest.param(text, links, id=name) for name, text, links in cases()])
def test_it_finds_what_a_careful_reader_finds(text: str, links: list[tuple[int, str]]) -> None:
    assert sorted(found(text)) == sorted(links)


@pytest.mark.parametrize(("text", "links"), [pytest.param(text, links, id=name) for name, text, links in cases()])
@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_byte_order_mark_change_nothing(
    tmp_path: Path, text: str, links: list[tuple[int, str]], line_end: str, mark: bytes
) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(mark + text.replace("\n", line_end).encode())
    extracted = extract_links(file, "markdown")
    assert extracted.problem is None
    assert sorted((link.line, link.text) for link in extracted.links) == sorted(links)


def test_links_are_in_the_order_of_their_lines() -> None:
    text = "https://a.example.com/1\n\n[^1]\n\n> https://a.example.com/2\n\n<b>https://a.example.com/3</b>\n"
    assert found(text) == [
        (1, "https://a.example.com/1"),
        (5, "https://a.example.com/2"),
        (7, "https://a.example.com/3"),
    ]


def test_what_is_nested_too_deeply_is_said() -> None:
    read = markdown_links("> " * 300 + "https://a.example.com/deep\n\nhttps://a.example.com/after\n")
    assert read.too_deep
    assert [link.text for link in read.links] == ["https://a.example.com/after"]
    assert not markdown_links("> " * 40 + "https://a.example.com/deep").too_deep
