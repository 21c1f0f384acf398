"""Patch files for moved links: `git apply` takes them, and every byte beside the URL stays as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.report_formats.patches import Patches, make_patches, unpatched_table
from linkwatch_pipeline.adapters.report_formats.spelling import CannotStandHere, find_url, respell
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.findings import MovedLink
from linkwatch_pipeline.domain.links import Link, Place
from linkwatch_pipeline_tests.builders import MONDAY, a_link, after

OLD, NEW = "https://a.example/x", "https://b.example/y?p=1&q=2"


def moved(link_id: str, url: str = OLD, target: str = NEW) -> MovedLink:
    return MovedLink(link_id=link_id, url=url, target=target, hops=1, since=MONDAY)


def links(**places: list[tuple[str, int]]) -> dict[str, Link]:
    return {
        link_id: a_link(link_id, OLD, places=tuple(Place(file=file, line=line) for file, line in where))
        for link_id, where in places.items()
    }


def patched(tmp_path: Path, content: Mapping[str, bytes], *places: tuple[str, int], target: str = NEW) -> Patches:
    """A handbook of these files, and the patches for one moved link in it."""
    for file, text in content.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(text)
    return make_patches([moved("a", target=target)], links(a=list(places)), tmp_path)


def apply(handbook: Path, patches: Patches) -> None:
    for diff in patches.diffs.values():
        done = subprocess.run(["git", "apply", "-"], cwd=handbook, input=diff, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("file", "before", "line", "expected"),
    [
        ("a.md", b"one\n[x](https://a.example/x)\nthree\n", 2, b"one\n[x](" + NEW.encode() + b")\nthree\n"),
        ("crlf.md", b"one\r\n<https://a.example/x>\r\nthree\r\n", 2, b"one\r\n<" + NEW.encode() + b">\r\nthree\r\n"),
        ("no-end.md", b"one\n[x]: https://a.example/x", 2, b"one\n[x]: " + NEW.encode()),
        ("cr.txt", b"one\rhttps://a.example/x\rthree", 2, b"one\r" + NEW.encode() + b"\rthree"),
        ("bytes.txt", b"caf\xe9 \xff https://a.example/x \xfe\n", 1, b"caf\xe9 \xff " + NEW.encode() + b" \xfe\n"),
        ("bom.md", b"\xef\xbb\xbfhttps://a.example/x\n", 1, b"\xef\xbb\xbf" + NEW.encode() + b"\n"),
        (
            "a.html",
            b'<a href="https://a.example/x#top">x</a>\n',
            1,
            b'<a href="https://b.example/y?p=1&amp;q=2#top">x</a>\n',
        ),
        ("sitemap.xml", b"<loc>https://a.example/x</loc>\n", 1, b"<loc>https://b.example/y?p=1&amp;q=2</loc>\n"),
        (
            "a b/\xc3\xa4 'q' \"z\".md".encode("latin-1").decode("utf-8"),
            b"https://a.example/x\n",
            1,
            NEW.encode() + b"\n",
        ),
        ("twice.md", b"[https://a.example/x](https://a.example/x)\n", 1, f"[{NEW}]({NEW})\n".encode()),
        ("upper.md", b"HTTPS://A.Example:443/x.\n", 1, NEW.encode() + b".\n"),
        ("quote.html", b"<a href='//a.example/x'>\n", 1, b"<a href='https://b.example/y?p=1&amp;q=2'>\n"),
        (
            "longer.md",
            b"https://a.example/x/y https://a.example/x\n",
            1,
            b"https://a.example/x/y " + NEW.encode() + b"\n",
        ),
    ],
)
def test_git_applies_the_patch_and_nothing_else_changes(
    tmp_path: Path, file: str, before: bytes, line: int, expected: bytes
) -> None:
    made = patched(tmp_path, {file: before}, (file, line))
    assert [(move.file, move.line) for move in made.patched] == [(file, line)]
    assert made.unpatched == ()
    assert (tmp_path / file).read_bytes() == before  # nothing is written by us
    apply(tmp_path, made)
    assert (tmp_path / file).read_bytes() == expected


def test_one_patch_for_each_file_holds_all_its_changes(tmp_path: Path) -> None:
    text = b"".join(b"line %d https://a.example/x\n" % number for number in range(1, 60))
    made = patched(tmp_path, {"a.md": text, "b.md": text}, ("a.md", 1), ("a.md", 59), ("b.md", 30), ("a.md", 30))
    assert (list(made.diffs), len(made.patched)) == (["a.md", "b.md"], 4)
    apply(tmp_path, made)
    lines = (tmp_path / "a.md").read_text().splitlines()
    assert [number for number, line in enumerate(lines, 1) if NEW in line] == [1, 30, 59]


@pytest.mark.parametrize(
    ("content", "place", "why"),
    [
        ({"a.md": b"[x][ref]\n\n[ref]: https://a.example/x\n"}, ("a.md", 1), "does not hold the URL"),
        ({"a.md": b"https://a.example/x\n"}, ("a.md", 7), "does not hold the URL"),
        ({"a.md": b"https://a.example/xy https://a.example/x/ http://a.example/x\n"}, ("a.md", 1), "does not hold"),
        ({"a.md": b"https://web.example/2020/https://a.example/x\n"}, ("a.md", 1), "does not hold the URL"),
        ({}, ("a.md", 1), "no such file"),
        ({}, ("../outside.md", 1), "outside of the handbook"),
        ({}, ("/etc/passwd", 1), "outside of the handbook"),
        ({"b/a.md": b"https://a.example/x\n"}, ("b/../b/a.md", 1), "outside of the handbook"),
        ({}, ("a\0.md", 1), "no file has such a name"),
        ({"a.txt": "https://a.example/x".encode("utf-16")}, ("a.txt", 1), "encoding"),
    ],
)
def test_what_is_not_patched_says_why(
    tmp_path: Path, content: dict[str, bytes], place: tuple[str, int], why: str
) -> None:
    made = patched(tmp_path, content, place)
    assert (made.diffs, made.patched) == ({}, ())
    [left] = made.unpatched
    assert why in (left.why or "")
    assert why in "".join(unpatched_table(made.unpatched))


def test_a_link_to_a_file_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_bytes(b"https://a.example/x\n")
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "a.md").symlink_to(tmp_path / "secret.md")
    made = patched(handbook, {}, ("a.md", 1))
    assert [move.why for move in made.unpatched] == ["the file is outside of the handbook"]


def test_links_that_changed_since_are_left_alone(tmp_path: Path) -> None:
    known = {
        "retired": a_link("retired", OLD, retired_at=after(days=1), places=(Place(file="a.md", line=1),)),
        "updated": a_link("updated", "https://a.example/other", places=(Place(file="a.md", line=1),)),
        "placeless": a_link("placeless", OLD),
        "script": a_link("script", OLD, places=(Place(file="a.md", line=1),)),
    }
    rows = [moved(link_id) for link_id in ("retired", "updated", "placeless", "unknown")]
    made = make_patches([*rows, moved("script", target="javascript:alert(1)")], known, tmp_path)
    assert made.diffs == {}
    assert [(move.link_id, (move.why or "")[:22]) for move in made.unpatched] == [
        ("retired", "the link is retired or"),
        ("updated", "the link is retired or"),
        ("placeless", "no place in the handbo"),
        ("unknown", "the link is retired or"),
        ("script", "the new address is not"),
    ]


def test_a_handbook_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--handbook"):
        make_patches([], {}, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "line", "target", "expected"),
    [
        ("a.md", "see https://a.example/x, or (https://a.example/x)", "https://b.example/", "see {}, or ({})"),
        ("a.md", "**https://a.example/x**", "https://b.example/", "**{}**"),
        ("a.md", "[a](https://a.example/x)[b](https://a.example/x#f)", "https://b.example/", "[a]({})[b]({}#f)"),
        ("a.md", "[a](https://a.example/x#f)[b](https://a.example/x)", "https://b.example/", "[a]({}#f)[b]({})"),
        (
            "a.md",
            "[a](https://a.example/x's_law) https://a.example/x",
            "https://b.example/",
            "[a](https://a.example/x's_law) {}",
        ),
        (
            "a.html",
            "<a href='https://a.example/x'>https://a.example/x's",
            "https://b.example/",
            "<a href='{}'>https://a.example/x's",
        ),
        ("a.csv", '"https://a.example/x,y",https://a.example/x', "https://b.example/", '"https://a.example/x,y",{}'),
        ("a.csv", '"https://a.example/x",1', "https://b.example/", '"{}",1'),
        ("a.md", "https://a.example/x?a", "https://b.example/", "https://a.example/x?a"),
        ("a.md", "<https://a.example/x>", "https://b.example/?a=1&copy=2", "<https://b.example/?a=1&amp;copy=2>"),
        ("a.csv", "1,https://a.example/x,2", "https://b.example/", "1,{},2"),
        ("a.rst", "`x <https://a.example/x>`_", "https://b.example/(1)", "`x <{}>`_"),
        ("a.txt", "mailto:x@y.example https://a.example/x", "https://b.example/", "mailto:x@y.example {}"),
    ],
)
def test_a_url_is_found_as_it_is_spelled(file: str, line: str, target: str, expected: str) -> None:
    made, after_last = "", 0
    for old in find_url(line, OLD, file=file):
        made += line[after_last : old.start] + respell(target, old, file=file)
        after_last = old.end
    assert made + line[after_last:] == expected.replace("{}", target)


@pytest.mark.parametrize(
    ("file", "line", "target"),
    [
        ("a.md", "[x](https://a.example/x)", "https://b.example/a)b"),
        ("a.md", "[x](https://a.example/x)", "https://b.example/a|b"),
        ("a.md", "<a href='https://a.example/x'>", "https://b.example/l'a"),
        ("a.csv", "1,https://a.example/x", "https://b.example/a,b"),
        ("a.rst", "`x <https://a.example/x>`_", "https://b.example/a_"),
    ],
)
def test_an_address_that_would_end_early_in_its_new_place_is_left_to_a_person(
    file: str, line: str, target: str
) -> None:
    [old] = find_url(line, OLD, file=file)
    with pytest.raises(CannotStandHere):
        respell(target, old, file=file)
