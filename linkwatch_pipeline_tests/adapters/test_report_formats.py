"""The report in formats for pipelines: what fails, what only warns, and nothing that others wrote can do harm."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import jsonschema
import pytest
from markdown_it import MarkdownIt

from linkwatch_pipeline.adapters.report_formats.csv_table import COLUMNS, csv_report
from linkwatch_pipeline.adapters.report_formats.inert import cut, no_formula, visible
from linkwatch_pipeline.adapters.report_formats.junit import junit_report
from linkwatch_pipeline.adapters.report_formats.markdown import markdown_report
from linkwatch_pipeline.adapters.report_formats.sarif import sarif_report
from linkwatch_pipeline.domain.coverage import Ranked
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline_tests.report_builders import HOSTILE, a_report, an_empty_report, ends_of

SARIF_PART = Path(__file__).parents[1] / "data" / "sarif-2.1.0-used-part.json"
CALM = "https://docs.example/guide"


def table(report: CoverageReport) -> list[dict[str, str]]:
    text = "".join(csv_report(report))
    return list(csv.DictReader(StringIO(text, newline="")))


def sarif(report: CoverageReport) -> dict[str, Any]:
    """The document as a code host reads it, valid by the schema."""
    document: dict[str, Any] = json.loads(json.dumps(sarif_report(report, version="1.2.3")))
    schema = json.loads(SARIF_PART.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)
    return document


def junit(report: CoverageReport, **changed: Any) -> ElementTree.Element:
    """The document, of the shape that readers of JUnit XML rely on."""
    root = ElementTree.fromstring("".join(junit_report(report, changed.get("ends", ends_of(report)))))
    assert (root.tag, [suite.tag for suite in root]) == ("testsuites", ["testsuite"])
    cases = list(root[0])
    for element in (root, root[0]):
        assert set(element.attrib) == {"name", "tests", "failures", "errors", "skipped", "time"}
        assert element.get("tests") == str(len(cases))
        assert element.get("failures") == str(len(root.findall(".//failure")))
        assert element.get("skipped") == str(len(root.findall(".//skipped")))
    for case in cases:
        assert case.tag == "testcase"
        assert {"classname", "name", "time"} <= set(case.attrib) <= {"classname", "name", "time", "file", "line"}
        assert [child.tag for child in case] in ([], ["failure"], ["skipped"])
    return root


def page_of(markdown: str) -> Any:
    """Markdown as a forge shows it, as a tree."""
    return html5lib.parse(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def tags(tree: Any) -> set[str]:
    return {element.tag.partition("}")[2] for element in tree.iter() if isinstance(element.tag, str)}


def test_csv_has_a_row_for_each_finding_and_place() -> None:
    rows = table(a_report(CALM))
    assert list(rows[0]) == list(COLUMNS)
    assert [(row["rule"], row["level"], row["line"]) for row in rows] == [
        ("newly_broken", "error", "3"),
        ("newly_broken", "error", "1"),
        ("still_broken", "error", ""),
        ("content_changed", "warning", "3"),
        ("content_changed", "warning", "1"),
        ("moved_for_good", "warning", "3"),
        ("moved_for_good", "warning", "1"),
        ("repeated_uncertainty", "note", "3"),
        ("repeated_uncertainty", "note", "1"),
        ("suspected_page", "note", "3"),
        ("suspected_page", "note", "1"),
        ("ending_certificate", "note", ""),
    ]
    assert rows[0] | {"url": CALM, "owner": "docs-team", "status": "404", "since": "2026-09-28T09:01:00Z"} == rows[0]


def test_sarif_names_file_and_line_and_calls_only_what_is_broken_an_error() -> None:
    document = sarif(a_report(CALM))
    [run] = document["runs"]
    assert run["tool"]["driver"]["version"] == "1.2.3"
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    levels = {(result["ruleId"], result["level"]) for result in run["results"]}
    assert {rule for rule, level in levels if level == "error"} == {"newly_broken", "still_broken"}
    assert ("repeated_uncertainty", "note") in levels
    first = run["results"][0]
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "docs/https%3A//docs.example/guide.md", "uriBaseId": "HANDBOOK"},
                "region": {"startLine": 3},
            }
        }
    ]
    assert first["message"]["text"] == f"{CALM} broken since 2026-09-28: HTTP 404"
    unplaced = next(result for result in run["results"] if result["ruleId"] == "still_broken")
    assert unplaced["locations"] == [{"logicalLocations": [{"fullyQualifiedName": CALM, "kind": "resource"}]}]


def test_a_sarif_finding_stays_the_same_when_its_line_moves_and_when_it_grows_old() -> None:
    report = a_report(CALM)
    link = report.links["link-0"]
    moved = replace(link, places=tuple(replace(place, line=place.line + 9) for place in link.places))
    later = replace(
        report, newly_broken=Ranked(), still_broken=report.newly_broken, links={**report.links, "link-0": moved}
    )

    def prints(found: CoverageReport) -> list[str]:
        broken = [r for r in sarif(found)["runs"][0]["results"] if r["level"] == "error"]
        return [
            r["partialFingerprints"]["linkwatchFinding/v1"] for r in broken if r["properties"]["linkId"] == "link-0"
        ]

    assert prints(report) == prints(later)
    assert len(set(prints(report))) == 2


def test_junit_fails_what_is_broken_and_skips_what_is_not_known() -> None:
    root = junit(a_report(CALM))
    found = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert found == {
        f"link-0 {CALM}": ["failure"],
        f"link-0-old {CALM}": ["failure"],  # nobody looked this week, and it is broken still
        "other-reachable https://docs.example/": [],
        "other-broken https://docs.example/": ["skipped"],  # not confirmed: its state is not broken
        "other-throttled https://docs.example/": ["skipped"],
        "other-uncertain https://docs.example/": ["skipped"],
        "other-content_changed https://docs.example/": ["skipped"],
    }
    failed = next(root.iter("testcase"))
    assert (failed.get("classname"), failed.get("line"), failed.get("time")) == ("docs-team", "3", "0.120")
    assert failed[0].get("message") == "broken since 2026-09-28: HTTP 404; good from 2026-08-24 until then"


def test_markdown_shows_every_section_and_leads_to_pages() -> None:
    text = "".join(markdown_report(a_report(CALM)))
    tree = page_of(text)
    assert "**To mend: 4** (2 broken, 1 without the expected text, 1 moved for good). Nobody knows: 1." in text
    targets = {link.get("href") for link in tree.iter() if link.tag.endswith("}a")}
    assert targets == {CALM}
    assert len([row for row in tree.iter() if row.tag.endswith("}table")]) == 15  # and the weeks


@pytest.mark.parametrize("report", [an_empty_report()], ids=["nothing known"])
def test_a_report_without_data_is_well_formed_and_says_so(report: CoverageReport) -> None:
    assert table(report) == []
    assert sarif(report)["runs"][0]["results"] == []
    assert junit(report, ends=[]).get("tests") == "0"
    text = "".join(markdown_report(report))
    assert "Nobody knows: no data" in text
    assert "No link broke in this week." in text


def test_hostile_text_stays_text_in_csv() -> None:
    rows = table(a_report(*HOSTILE))
    assert {row["rule"] for row in rows} >= {"newly_broken", "ending_certificate"}
    for row in rows:
        for cell in row.values():
            assert not re.match("[\\s'\"]*[=+\\-@\uff1d\uff1b]", cell) or cell.startswith("'"), cell
            assert cell.isprintable()


def test_hostile_text_stays_text_in_junit() -> None:
    root = junit(a_report(*HOSTILE))
    assert {element.tag for element in root.iter()} == {"testsuites", "testsuite", "testcase", "failure", "skipped"}
    assert f"link-10 {HOSTILE[10]}" in {case.get("name") for case in root.iter("testcase")}
    for element in root.iter():
        assert all(value.isprintable() for value in (*element.attrib.values(), (element.text or "").strip()))


def test_hostile_text_stays_text_in_sarif() -> None:
    report = a_report(*HOSTILE)
    document = sarif(report)
    texts = [result["message"]["text"] for result in document["runs"][0]["results"]]
    assert all(text.isprintable() for text in texts)
    assert not any(re.search(r"(?<!\\)\[[^\]]*\]\(", text) for text in texts)
    assert json.dumps(document).isascii()


def test_hostile_text_stays_text_in_markdown() -> None:
    text = "".join(markdown_report(a_report(*HOSTILE)))
    tree = page_of(text)
    assert tags(tree) == {
        "html", "head", "body", "h1", "h2", "h3", "p", "strong", "code", "a",
        "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    targets = [element.get("href") for element in tree.iter() if element.tag.endswith("}a")]
    assert targets
    assert all(target.startswith("https://h.example/") for target in targets)
    columns = {len(row) for body in tree.iter() if body.tag.endswith("}tbody") for row in body}
    heads = {len(row) for head in tree.iter() if head.tag.endswith("}thead") for row in head}
    assert columns <= heads
    shown = {"".join(code.itertext()) for code in tree.iter() if code.tag.endswith("}code")}
    for hostile in HOSTILE:
        assert cut(visible(hostile), 200) in shown
    assert len(max(text.splitlines(), key=len)) < 8_000
    assert not re.search(r"(?<![&\w])[@#](?=\w)", re.sub(r"&#\d+;", "", text.replace("\n#", "")))


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", " =1", "\t=1", "'=1", '"=1', "\uff1d1"])
def test_what_begins_a_formula_is_shown_and_not_run(text: str) -> None:
    assert no_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["https://a.example/?a=1+1", "docs-team", "1", "", "a@b"])
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    assert no_formula(text) == text
