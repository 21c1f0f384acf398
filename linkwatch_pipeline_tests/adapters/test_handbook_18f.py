"""A real handbook: eight files of the TTS (18F) handbook (CC0), with the list of their URLs as a reader takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.fetch.policy import PublicPolicy
from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
from linkwatch_pipeline.domain.handbook import Aside, ScanResult
from linkwatch_pipeline.use_cases.scan import scan_paths

DATA = Path(__file__).parent.parent / "data" / "handbook"
HANDBOOK = DATA / "18f"
USES_OF_DEFINITIONS = [("pages/tools/google-groups.md", line) for line in (22, 40, 52)]


@pytest.fixture(scope="module")
def result() -> ScanResult:
    return scan_paths([HANDBOOK], reader=HandbookReader(), judge_address=PublicPolicy().judge_address)


def test_exactly_the_urls_of_the_handbook_are_found(result: ScanResult) -> None:
    assert [found.url for found in result.found] == (DATA / "18f.urls").read_text().split()
    assert result.problems == ()


def test_each_place_is_the_line_that_holds_the_address_or_uses_its_definition(result: ScanResult) -> None:
    lines = {file: (HANDBOOK / file).read_text().splitlines() for file in result.files}
    used = []
    for found in result.found:
        address = found.url.split("://")[1].rstrip("/")
        for place in found.places:
            line = lines[place.file][place.line - 1]
            if address not in line:
                used.append((place.file, place.line))
                assert "[" in line, (found.url, place)
    assert sorted(used) == USES_OF_DEFINITIONS


def test_what_is_left_out_has_its_reason(result: ScanResult) -> None:
    reasons = {skipped.reason for skipped in result.skipped}
    assert reasons == {"a template: the address exists only when the page is built"}
    invitation = next(skipped for skipped in result.skipped if "orgs/" in skipped.text)
    assert (invitation.file, invitation.line) == ("pages/tools/github.md", 96)
    assert invitation.text == "https://github.com/orgs/<organization-name>/invitation?via_email=1"
    assert result.asides == {Aside.ANCHOR: 15, Aside.MAIL: 1}
