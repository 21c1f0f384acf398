"""The report's pages in a real browser: nothing runs that is not the page's own, and everybody can read them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.report_formats.html import html_report, overview_pages
from linkwatch_pipeline_tests.browser import FOUND, Browser
from linkwatch_pipeline_tests.report_builders import HOSTILE, a_report

AXE = resources.files("axe_core_python") / "axe.min.js"
SERIOUS = """
axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(v => ["serious", "critical"].includes(v.impact))
  .map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 120)).slice(0, 3).join(" | ")))
"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLUMN = """
Array.from(document.querySelectorAll("#by_host tbody tr"), row => row.cells[0].textContent.trim())
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if FOUND is None:
        pytest.skip("no Chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of a report that is as hostile as can be."""
    folder = tmp_path_factory.mktemp("pages")
    report = a_report("https://docs.example/b", "https://docs.example/a", *HOSTILE)
    (folder / "report.html").write_text(html_report(report, most=25), encoding="utf-8")
    (folder / "short.html").write_text(html_report(report, most=2), encoding="utf-8")  # axe looks at every pixel
    for name, page in overview_pages(report, [], most=2):
        (folder / name).write_text(page, encoding="utf-8")
    return folder


@pytest.mark.parametrize("width", [380, 1200])
@pytest.mark.parametrize("name", ["report.html", "index.html", "owner-docs-team.html"])
def test_pages_fit_the_screen_and_load_nothing(browser: Browser, pages: Path, name: str, width: int) -> None:
    browser.open(pages / name, width=width)
    assert browser.run(OVERFLOW) <= 0
    assert browser.requested == [(pages / name).as_uri()]
    assert browser.complaints == []
    assert browser.run("document.scripts.length") == 1
    smallest = (
        "Math.min(...Array.from(document.querySelectorAll('body *'), e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert browser.run(smallest) >= 13


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("short.html", 1200, False),
        ("short.html", 380, True),
        ("index.html", 380, False),
        ("owner-docs-team.html", 1200, True),
    ],
)
def test_nobody_is_shut_out(browser: Browser, pages: Path, name: str, width: int, dark: bool) -> None:
    browser.open(pages / name, width=width, dark=dark)
    browser.run(AXE.read_text(encoding="utf-8") + "; 0")
    assert browser.run(SERIOUS) == []


def test_a_click_on_a_columns_name_sorts_the_table(browser: Browser, pages: Path) -> None:
    browser.open(pages / "report.html")
    before = browser.run(COLUMN)
    button = "document.querySelector('#by_host th button')"
    browser.run(f"{button}.click()")
    up = browser.run(COLUMN)
    assert up != before
    assert up.index("https://docs.example/a") < up.index("https://docs.example/b")
    assert browser.run(f"{button}.parentNode.getAttribute('aria-sort')") == "ascending"
    browser.run(f"{button}.click()")
    assert browser.run(COLUMN) == up[::-1]
    assert sorted(up) == sorted(before)


def test_the_page_is_whole_without_its_script(browser: Browser, pages: Path) -> None:
    browser.open(pages / "report.html", width=380, script=False)
    assert browser.run("document.querySelectorAll('th button').length") == 0
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
    assert browser.run("document.querySelectorAll('#by_host tbody tr').length") > 20
    assert browser.run(OVERFLOW) <= 0


def test_paper_shows_whole_tables_in_black_on_white(browser: Browser, pages: Path) -> None:
    browser.open(pages / "report.html", width=700, dark=True)
    browser.print_out()
    assert browser.run(OVERFLOW) <= 0
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_an_injected_script_would_not_run(browser: Browser, tmp_path: Path) -> None:
    """The policy holds even if a text got through as markup."""
    page = html_report(a_report()).replace("</main>", "<script>document.title = 'owned'</script></main>")
    (tmp_path / "injected.html").write_text(page, encoding="utf-8")
    browser.open(tmp_path / "injected.html")
    assert browser.run("document.title") == "Links of week 2026-09-28"
    assert any("Content Security Policy" in said for said in browser.complaints)
