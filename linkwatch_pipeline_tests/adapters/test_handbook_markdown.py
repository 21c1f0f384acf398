"""Links in Markdown, with their lines, against a corpus labelled by hand (data/handbook/awkward_markdown.txt)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.handbook.extract import extract_links, kind_of
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


MDX = """import Card from 'https://a.example.com/no'
export const address = 'https://a.example.com/no'

# [x](https://a.example.com/1)

{/* [x](https://a.example.com/no)

- https://a.example.com/no */}

```js
import x

https://a.example.com/no
```

<Card href={"https://a.example.com/2"} />
"""


def test_modules_and_comments_of_mdx_are_no_links(tmp_path: Path) -> None:
    file = tmp_path / "a.mdx"
    file.write_text(MDX)
    extracted = extract_links(file, str(kind_of(file)))
    assert [(link.line, link.text) for link in extracted.links] == [
        (4, "https://a.example.com/1"),
        (16, "https://a.example.com/2"),
    ]
    assert found("import duties: https://a.example.com/1") == [(1, "https://a.example.com/1")]


@pytest.mark.parametrize(
    "front_matter",
    [
        '{\n"a": {"b": "https://a.example.com/no"}\n}\n',
        '---json\n{"a": "https://a.example.com/no"}\n---\n',
        ';;;\n"a": "https://a.example.com/no"\n;;;\n',
        "---toml\na = 'https://a.example.com/no'\n---\n",
    ],
)
def test_front_matter_of_other_generators_is_no_link(front_matter: str) -> None:
    lines = front_matter.count("\n")
    assert found(f"{front_matter}https://a.example.com/1") == [(lines + 1, "https://a.example.com/1")]


@pytest.mark.parametrize("text", ['{"a"} https://a.example.com/1', "{" * 100_000 + "\nhttps://a.example.com/1"])
def test_what_only_begins_like_json_is_text(text: str) -> None:
    assert [link for _, link in found(text)] == ["https://a.example.com/1"]
