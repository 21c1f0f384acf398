"""`linkwatch report` as a maker of files: pages, formats and patches, each whole or refused before anything is made."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.entrypoints.test_cli_report import TWO_WEEKS, observe


@pytest.fixture
def watched(terminal: Terminal) -> Terminal:
    """Two weeks with all that a report shows."""
    for week in (MONDAY - WEEK, MONDAY):
        observe(terminal, week, TWO_WEEKS)
    return terminal


def test_each_format_is_printed_alone(watched: Terminal) -> None:
    assert watched.fine("report", "--format", "csv").out.startswith("week,rule,level,link_id,url")
    assert json.loads(watched.fine("report", "--format", "sarif").out)["version"] == "2.1.0"
    root = ElementTree.fromstring(watched.fine("report", "--format", "junit").out)
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "1", "2")
    assert watched.fine("report", "--format", "markdown").out.startswith("# Links of week 2026-09-28\n")
    assert watched.fine("report", "--format", "json").document == watched.fine("report", "--json").document


def test_pages_and_formats_are_written_in_one_call(watched: Terminal, tmp_path: Path) -> None:
    page, folder, table = tmp_path / "report.html", tmp_path / "owners", tmp_path / "findings.csv"
    page.write_text("an earlier one")
    said = watched.fine(
        "report", "--html", str(page), "--overview", str(folder), "--format", "csv", "--out", str(table)
    )
    assert said.out == ""
    assert [line.partition(" and ")[0] for line in said.err.splitlines()] == [
        f"wrote {page}", f"wrote {folder / 'index.html'}", f"wrote {table}",
    ]  # fmt: skip
    assert "<title>Links of week 2026-09-28</title>" in page.read_text()
    assert sorted(file.name for file in folder.iterdir()) == ["index.html", "owner-docs-team.html"]
    assert table.read_text().count("\n") == 7
    assert stat.S_IMODE(page.stat().st_mode) & 0o400
    assert not list(tmp_path.glob(".tmp-*"))


def test_json_is_printed_beside_the_page(watched: Terminal, tmp_path: Path) -> None:
    said = watched.fine("report", "--json", "--html", str(tmp_path / "report.html"))
    assert said.document["score"] == {
        "to_mend": 2, "broken": 1, "text_missing": 1, "moved": 0, "unsure": 1, "advice": 0,
    }  # fmt: skip
    assert (tmp_path / "report.html").exists()


def test_patches_and_what_is_left_to_a_person_are_written(watched: Terminal, tmp_path: Path) -> None:
    handbook, patches = tmp_path / "handbook", tmp_path / "patches"
    handbook.mkdir()
    said = watched.fine("report", "--patches", str(patches), "--handbook", str(handbook))
    assert said.err.startswith("patched 0 places in 0 files; 0 not")
    assert (patches / "not-patched.csv").read_text() == "link_id,file,line,url,new_url,why\n"
    again = watched.refused("report", "--patches", str(patches), "--handbook", str(handbook))
    assert "is not empty" in again


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "a.csv"], "--out needs --format"),
        (["--patches", "p"], "belong together"),
        (["--handbook", "."], "belong together"),
        (["--patches", "p", "--handbook", "nowhere"], "--handbook: there is no folder"),
        (["--html", "nowhere/a.html"], "--html: there is no folder"),
        (["--format", "csv", "--out", "nowhere/a.csv"], "--out: there is no folder"),
        (["--format", "pdf"], "'pdf' is not one of"),
        (["--json", "--format", "csv"], "not both"),
    ],
)
def test_flags_that_do_not_fit_are_refused_before_a_home_is_made(
    terminal: Terminal, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in terminal.refused("report", *words)
    assert not terminal.home.exists()


def test_without_jinja2_the_missing_extra_is_named(
    watched: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from linkwatch_pipeline.adapters.report_formats.html import _environment

    _environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "linkwatch-pipeline[reports]" in watched.refused("report", "--html", str(tmp_path / "a.html"))
    assert list(tmp_path.glob("*.html")) == []
