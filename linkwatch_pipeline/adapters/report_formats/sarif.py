"""The report's findings as SARIF 2.1.0, which code hosts show beside the line of the handbook.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0. File names are relative to the handbook (`HANDBOOK`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from linkwatch_pipeline.adapters.report_formats.annotations import LEVELS, MEANINGS, Annotation, Rule, annotate
from linkwatch_pipeline.adapters.report_formats.inert import visible
from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.timestamps import week_key

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = tuple(Rule)


def sarif_report(report: CoverageReport, *, version: str) -> dict[str, Any]:
    """The document. Args: version: linkwatch's own, as it names itself."""
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "linkwatch", "version": version, "rules": [_rule(rule) for rule in _RULES]}
                },
                "automationDetails": {"id": f"linkwatch/{week_key(report.this_week.week)}"},
                "columnKind": "unicodeCodePoints",
                "results": [result for found in annotate(report) for result in _results(found)],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.value,
        "shortDescription": {"text": MEANINGS[rule]},
        "defaultConfiguration": {"level": LEVELS[rule].value},
    }


def _results(found: Annotation) -> Iterator[dict[str, Any]]:
    """One result for each place: a code host shows one place of a result only."""
    for place in found.places or (None,):
        yield {
            "ruleId": found.rule.value,
            "ruleIndex": _RULES.index(found.rule),
            "level": found.level.value,
            "message": {"text": _plain(f"{found.url} {found.detail}")},
            "locations": [_location(found, place)],
            "partialFingerprints": {"linkwatchFinding/v1": _fingerprint(found, place)},
            "properties": {"linkId": found.link_id, "owner": found.owner, "url": visible(found.url)},
        }


def _location(found: Annotation, place: Place | None) -> dict[str, Any]:
    if place is None:
        return {"logicalLocations": [{"fullyQualifiedName": visible(found.url), "kind": "resource"}]}
    safe = "" if place.file.startswith("/") else "/"  # `//name/` would name another machine
    artifact = {"uri": quote(place.file, safe=safe, errors="backslashreplace"), "uriBaseId": "HANDBOOK"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": place.line}}}


def _plain(text: str) -> str:
    """A text without links of SARIF's own kind: `[words](target)`."""
    return re.sub(r"([\\\[\]])", r"\\\1", visible(text))


def _fingerprint(found: Annotation, place: Place | None) -> str:
    """The same for the same finding when its line moves: a link that breaks and stays broken is one finding."""
    rule = Rule.STILL_BROKEN if found.rule is Rule.NEWLY_BROKEN else found.rule
    parts = (rule.value, found.link_id or found.url, place.file if place is not None else "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
