"""The report as one HTML file: valid, alone, complete, and inert whatever others wrote."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest

from linkwatch_pipeline.adapters.report_formats.html import html_report, overview_pages
from linkwatch_pipeline.adapters.report_formats.markdown import markdown_report
from linkwatch_pipeline.domain.coverage import Ranked, WeekCount
from linkwatch_pipeline.domain.findings import GroupCount
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.runs import RunState
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.report_builders import HOSTILE, a_report, an_empty_report

CALM = "https://docs.example/guide"
XHTML = "{http://www.w3.org/1999/xhtml}"


def parsed(page: str) -> Any:
    """The page as a tree; the strict parser complains about every mistake."""
    return html5lib.HTMLParser(strict=True).parse(page)


def text_of(element: Element) -> str:
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


def section(tree: Any, key: str) -> Element:
    [found] = [element for element in tree.iter(f"{XHTML}section") if element.get("id") == key]
    assert isinstance(found, Element)
    return found


def all_pages(report: CoverageReport) -> list[str]:
    return [html_report(report), *(page for _, page in overview_pages(report, ["an-idle-team"]))]


SECTIONS = {
    "newly_broken": "No link broke in this week.",
    "still_broken": "No link was broken before this week",
    "content_changed": "Every page that was found had the text",
    "moved_for_good": "No page moved for good.",
    "recovered": "No link came back.",
    "repeated_uncertainty": "No link was uncertain two weeks in a row.",
    "suspected_pages": "No page looks like another",
    "ending_certificates": "No certificate ends within 21 days.",
    "by_owner": "No link was looked at",
    "by_host": "No link was looked at",
    "by_file": "No link was looked at",
    "worst_hosts": "No host is in trouble.",
    "slowest_hosts": "No host answered",
    "availability": "No link was broken in the last 52 weeks.",
}


def test_every_section_has_its_rows_and_each_value_its_name() -> None:
    tree = parsed(html_report(a_report(CALM, "https://docs.example/other")))
    for key in SECTIONS:
        rows = list(section(tree, key).iter(f"{XHTML}tr"))
        assert len(rows) >= 2, key
        heads = [text_of(cell) for cell in rows[0]]
        assert [cell.get("data-label") for cell in rows[1]] == heads
    [row] = list(section(tree, "recovered").iter(f"{XHTML}tr"))[1:]
    assert [text_of(cell) for cell in row] == [
        f"docs/{CALM}.md:3 (+1)", "docs-team", CALM, "2026-09-28 09:01", "404", "broken",
    ]  # fmt: skip


def test_sections_without_rows_say_so() -> None:
    tree = parsed(html_report(an_empty_report()))
    for key, words in SECTIONS.items():
        assert words in text_of(section(tree, key))
    page = text_of(tree)
    assert "0 to mend 0 broken, 0 without the expected text, 0 moved for good; nobody looked in this week" in page
    assert not [element for element in tree.iter(f"{XHTML}li") if element.get("class") == "good"]
    assert "no data nobody knows" in page
    assert "no data coverage" in page
    assert "No data: nobody looked in this week." in page


def test_the_score_counts_what_can_be_mended_and_nothing_else() -> None:
    report = a_report(CALM)
    score = report.score
    assert (score.broken, score.text_missing, score.moved, score.to_mend) == (2, 1, 1, 4)
    assert (score.unsure, score.advice) == (1, 2)
    assert "4 to mend 2 broken, 1 without the expected text, 1 moved for good" in text_of(parsed(html_report(report)))


def test_long_lists_are_cut_and_say_so() -> None:
    urls = [f"https://docs.example/{number}" for number in range(7)]
    tree = parsed(html_report(a_report(*urls), most=3))
    assert len(list(section(tree, "newly_broken").iter(f"{XHTML}tr"))) == 4
    assert "The first 3 of 7" in text_of(section(tree, "newly_broken"))


def test_nothing_is_loaded_and_only_the_pages_own_script_and_style_are_allowed() -> None:
    for page in all_pages(a_report(CALM)):
        tree = parsed(page)
        loading = [e for e in tree.iter() if e.get("src") or e.tag in (f"{XHTML}link", f"{XHTML}img", f"{XHTML}iframe")]
        assert loading == []
        assert not re.search(r"url\(|@import|https?://(?!docs\.example)", page.replace("http://www.w3.org", ""))
        [script], [style] = list(tree.iter(f"{XHTML}script")), list(tree.iter(f"{XHTML}style"))
        policy = next(e.get("content") for e in tree.iter(f"{XHTML}meta") if e.get("http-equiv"))
        hashes = [
            base64.b64encode(hashlib.sha256((element.text or "").encode()).digest()).decode()
            for element in (style, script)
        ]
        assert policy == (
            f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
            "base-uri 'none'; form-action 'none'"
        )
        assert not [e for e in tree.iter() if e.get("style") or any(name.startswith("on") for name in e.attrib)]


def test_hostile_text_stays_text() -> None:
    calm = {element.tag for page in all_pages(a_report(CALM)) for element in parsed(page).iter()}
    for page in all_pages(a_report(*HOSTILE)):
        tree = parsed(page)
        assert {element.tag for element in tree.iter()} <= calm
        assert len(list(tree.iter(f"{XHTML}script"))) == 1
        for link in tree.iter(f"{XHTML}a"):
            assert re.match(r"https://h\.example/|#[a-z_]+$|[a-z-]+\.html$", link.get("href") or ""), link.attrib
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\u2028]", page)
    shown = text_of(parsed(html_report(a_report(*HOSTILE))))
    assert "<script>alert(1)</script>" in shown
    assert "\\u202egpj.exe" in shown
    assert "{{ 7*7 }}{% raw %}${7*7}" in shown
    assert "(10,000 characters)" in shown


def test_each_owner_has_a_page_with_their_links_alone() -> None:
    pages = dict(overview_pages(a_report(CALM), ["an-idle-team", "Docs team"]))
    assert set(pages) == {
        "index.html",
        "owner-docs-team.html",
        "owner-an-idle-team.html",
        "owner-docs-team--2.html",
        "without-owner.html",
    }
    index = parsed(pages["index.html"])
    rows = [[text_of(cell) for cell in row] for row in index.iter(f"{XHTML}tr")]
    assert rows[0][:4] == ["owner", "links", "to mend", "broken"]
    assert ["docs-team", "9", "3", "1"] in [row[:4] for row in rows]
    assert ["nobody", "1", "1", "1"] in [row[:4] for row in rows]
    assert ["an-idle-team", "0", "0", "0"] in [row[:4] for row in rows]
    files = {link.get("href") for link in index.iter(f"{XHTML}a")}
    assert files == set(pages) - {"index.html"}
    own = {name: parsed(page) for name, page in pages.items()}
    mine = next(
        page for page in own.values() if text_of(next(page.iter(f"{XHTML}h1"))).startswith("Links of docs-team")
    )
    assert "docs-team" in text_of(section(mine, "newly_broken"))
    assert "No link was broken before this week" in text_of(section(mine, "still_broken"))
    assert "No link broke" in text_of(section(own["without-owner.html"], "newly_broken"))
    assert "2 to have a look at" not in text_of(mine)  # certificates are hosts', and no owner's


def test_what_nobody_knows_means_the_same_on_an_owners_page_as_on_the_page_of_all() -> None:
    report = a_report(CALM)
    unsure = GroupCount(name="docs-team", links=9, outcomes={Outcome.UNCERTAIN: 2, Outcome.THROTTLED: 3})
    pages = dict(overview_pages(replace(report, by_owner=Ranked(rows=(unsure,), total=1)), []))
    assert "5 nobody knows uncertain or throttled this week" in text_of(parsed(pages["owner-docs-team.html"]))
    assert "0 nobody knows" in text_of(parsed(pages["without-owner.html"]))
    rows = [[text_of(cell) for cell in row] for row in parsed(pages["index.html"]).iter(f"{XHTML}tr")]
    column = rows[0].index("nobody knows")
    assert [(row[0], row[column]) for row in rows[1:]] == [("docs-team", "5"), ("nobody", "0")]


def test_a_report_of_one_owner_leaves_everybody_else_out() -> None:
    report = a_report(CALM)
    own = report.of_owner("docs-team")
    assert own.newly_broken == report.newly_broken
    assert own.still_broken == Ranked()
    assert [group.name for group in own.by_owner.rows] == ["docs-team"]
    assert [change.link_id for change in report.of_owner(None).still_broken.rows] == ["link-0-old"]


def test_without_jinja2_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from linkwatch_pipeline.adapters.report_formats.html import _environment
    from linkwatch_pipeline.domain.errors import MissingExtra

    _environment.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtra, match="reports"):
        html_report(an_empty_report())


def test_every_page_names_the_weeks_since_that_nobody_ran() -> None:
    report = a_report(CALM)
    late = replace(report, missed_since=(MONDAY + 2 * WEEK, MONDAY + WEEK))
    words = "Nobody ran the 2 weeks since: 2026-10-12, 2026-10-05."
    assert all(words in text_of(parsed(page)) for page in all_pages(late))
    assert not any("Nobody ran" in page for page in all_pages(report))
    assert words in "".join(markdown_report(late))


def test_a_week_that_nobody_ran_says_so() -> None:
    report = a_report(CALM)
    missed = replace(report, weeks=(WeekCount(week=MONDAY, run_state=RunState.MISSED), *report.weeks[1:]))
    page = parsed(html_report(missed))
    assert "nobody ran it" in text_of(page)
    assert "2026-09-28 missed no data" in text_of(section(page, "weeks"))
