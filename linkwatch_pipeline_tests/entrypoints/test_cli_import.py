"""`linkwatch import` and `submit`: what a person types, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline_tests.entrypoints.terminal import FIXTURE_NOTICE, Terminal

CSV = """id,url,owner,notify,expect,confirm,file,line
guide,https://docs.python.org/3/,docs,docs@example.com,"Welcome, reader",2,docs/setup.md,12
pip,https://pip.pypa.io/en/stable/,docs,,,,,
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_is_imported_whole_and_again_without_effect(terminal: Terminal, folder: Path) -> None:
    (folder / "links.csv").write_text(CSV)
    done = terminal.fine("import", "links.csv")
    assert (done.out, done.err) == ("2 registered, 0 revived, 0 updated, 0 unchanged\nnew owners: docs\n", "")
    guide, pip = terminal.fine("links", "--json").document
    assert (guide["marker"], guide["confirm"]) == ("Welcome, reader", 2)
    assert guide["places"] == [{"file": "docs/setup.md", "line": 12}]
    assert pip["owner"] == "docs"
    terminal.fine("retire", "pip")
    again = terminal.fine("import", "links.csv").out
    assert again == "0 registered, 1 revived, 0 updated, 1 unchanged\n"
    assert "0 registered, 0 revived, 0 updated, 2 unchanged" in terminal.fine("import", "links.csv").out


@pytest.mark.parametrize("name", ["links.json", "links.yaml"])
def test_the_list_of_links_can_be_imported_again_after_a_little_mending(
    terminal: Terminal, folder: Path, name: str
) -> None:
    link = '{"id": "guide", "url": "https://docs.python.org/3/", "owner": "docs", "marker": null, "confirm": null}'
    (folder / name).write_text(f"[{link}]")  # JSON is YAML
    terminal.fine("owner", "docs", "docs@example.com")
    assert terminal.fine("import", name).out.startswith("1 registered")


def test_every_bad_row_is_named_and_nothing_is_written(terminal: Terminal, folder: Path) -> None:
    bad = "bad id,ftp://docs.python.org/,nobody,,,,,\nother,https://docs.python.org/3/,docs,,,x,,\n"
    (folder / "links.csv").write_text(CSV + bad)
    said = terminal.run("import", "links.csv")
    assert (said.code, said.out) == (2, "")
    lines = said.err.splitlines()
    assert [line.partition(": ")[0] for line in lines[:-1]] == ["links.csv:4"] * 3 + ["links.csv:5"] * 2
    assert [line.split(": ")[1] for line in lines[:-1]] == ["link_id", "url", "owner", "confirm", "url"]
    assert lines[-1] == "linkwatch: links.csv has something wrong on 2 lines; nothing was written."
    assert terminal.fine("links", "--json").document == []
    assert "docs" not in terminal.fine("owner", "--list").out


def test_the_same_fault_of_many_rows_is_told_once_and_of_many_faults_the_first(
    terminal: Terminal, folder: Path
) -> None:
    rows = [f"a{n},https://docs.python.org/{n},{'nobody' if n % 2 else 'noone'}," for n in range(100)]
    bad = [f"b{n},ftp://docs.python.org/{n},docs,d@example.com" for n in range(30)]
    (folder / "links.csv").write_text("\n".join(["link_id,url,owner,notify", *rows, *bad, ""]))
    said = terminal.run("import", "links.csv")
    assert said.code == 2
    lines = said.err.splitlines()
    mend = "give its address in 'notify', or run 'linkwatch owner'"
    assert lines[0] == f"links.csv:2: owner: there is no owner 'noone'; {mend} (also on lines 4, 6, 8 and 46 more)"
    assert lines[1] == f"links.csv:3: owner: there is no owner 'nobody'; {mend} (also on lines 5, 7, 9 and 46 more)"
    assert lines[-1] == "linkwatch: links.csv has something wrong on 130 lines; nothing was written."
    assert len([line for line in lines if ": url: " in line]) <= 21


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("links.txt", "https://docs.python.org/3/", "Name a .csv, .json, .yaml or .yml file"),
        ("links.csv", "id,url\nx,\0\n", "links.csv:2: there is a NUL character"),
        ("links.json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_table_is_refused_before_a_home_is_made(
    terminal: Terminal, folder: Path, name: str, content: str, words: str
) -> None:
    (folder / name).write_text(content)
    assert words in terminal.refused("import", name)
    assert not terminal.home.exists()


def test_what_a_row_says_cannot_move_the_cursor(terminal: Terminal, folder: Path) -> None:
    (folder / "links.json").write_text('[{"id": "a\\u001b[2J", "\\u001b[2J": "1"}]')
    (folder / "urls.txt").write_text("https://docs.python.org/\x1b[2J\n")
    assert "\x1b" not in terminal.run("import", "links.json").err
    assert "\x1b" not in terminal.run("submit", "urls.txt").out


def test_what_a_row_says_cannot_pass_for_another_line_of_ours(terminal: Terminal, folder: Path) -> None:
    (folder / "urls.csv").write_text('url\n"https://docs.python.org/\nurls.csv:9: accepted: https://a.example.com/"\n')
    (folder / "links.json").write_text('[{"link_id": "a", "x\\nlinks.json:9: y": "1"}]')
    assert not any(line.startswith("urls.csv:9") for line in terminal.run("submit", "urls.csv").out.splitlines())
    assert not any(line.startswith("links.json:9") for line in terminal.run("import", "links.json").err.splitlines())


class TestSubmit:
    @pytest.fixture(autouse=True)
    def owner(self, terminal: Terminal) -> None:
        terminal.fine("owner", "docs", "docs@example.com")

    def test_every_line_is_told_and_a_refusal_does_not_hold_back_the_others(
        self, terminal: Terminal, folder: Path
    ) -> None:
        terminal.fine("register", "guide", "https://docs.python.org/3/", "--owner", "docs")
        (folder / "urls.txt").write_text(
            "https://docs.python.org/3/\n\nhttp://169.254.169.254/\nhttps://peps.python.org/\n"
        )
        said = terminal.run("submit", "urls.txt", "--owner", "docs")
        assert said.code == 1
        assert said.out.splitlines() == [
            "urls.txt:1: already watched: https://docs.python.org/3/ is link guide, owner docs",
            "urls.txt:3: refused: http://169.254.169.254/: 169.254.169.254 port 80 is not a public address",
            "urls.txt:4: accepted: https://peps.python.org/ is link peps-python-org-3b93f9e5, owner docs",
        ]
        assert said.err == "1 accepted, 1 already watched, 1 refused\n"
        assert [link["id"] for link in terminal.fine("links", "--json").document] == [
            "guide",
            "peps-python-org-3b93f9e5",
        ]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("urls.csv", "url,owner\nhttps://peps.python.org/,docs\n"),
            ("urls.json", '[{"url": "https://peps.python.org/", "owner": "docs"}]'),
        ],
    )
    def test_a_table_names_its_owners(self, terminal: Terminal, folder: Path, name: str, content: str) -> None:
        (folder / name).write_text(content)
        assert "accepted" in terminal.fine("submit", name).out
        assert "already watched" in terminal.fine("submit", name).out

    def test_an_address_is_never_taken(self, terminal: Terminal, folder: Path) -> None:
        (folder / "urls.csv").write_text("url,owner,notify\nhttps://peps.python.org/,docs,me@example.com\n")
        assert "notify: unknown column" in terminal.refused("submit", "urls.csv")
        assert terminal.fine("links", "--json").document == []


def test_a_fixture_home_takes_what_it_can_reach(fixture_home: Terminal, folder: Path) -> None:
    (folder / "urls.txt").write_text("http://127.0.0.1:8765/a\n")
    fixture_home.fine("owner", "docs", "docs@example.com")
    said = fixture_home.fine("submit", "urls.txt", "--owner", "docs")
    assert "accepted" in said.out
    assert said.err == FIXTURE_NOTICE + "1 accepted, 0 already watched, 0 refused\n"


def test_imported_links_that_are_never_visited_are_named_and_many_are_counted(
    terminal: Terminal, tmp_path: Path
) -> None:
    rows = [f"l{n:02d},http://10.0.0.{n}/,docs,docs@example.com" for n in range(1, 24)]
    file = tmp_path / "links.csv"
    file.write_text("\n".join(["link_id,url,owner,notify", "ok,https://docs.python.org/3/,docs,", *rows]) + "\n")
    said = terminal.fine("import", str(file))
    lines = said.err.splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("warning: l01 is watched, but every check of it will be uncertain (blocked_address)")
    assert lines[-1] == "warning: so will those of 3 more links"
    assert terminal.fine("import", str(file)).err == ""
