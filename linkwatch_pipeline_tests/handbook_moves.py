"""A handbook whose links move for good: patched with `git apply`, scanned again, compared link by link."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.fetch.policy import PublicPolicy
from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
from linkwatch_pipeline.adapters.report_formats.patches import Patches, make_patches
from linkwatch_pipeline.adapters.warehouse.history.inventory import Inventory
from linkwatch_pipeline.domain.findings import MovedLink
from linkwatch_pipeline.domain.handbook import FoundUrl, scanned_link_id
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.use_cases.scan import scan_paths
from linkwatch_pipeline_tests.builders import MONDAY, a_link

OWNERS = ("delivery-team", "design-team", "tools-team")  # who a made-up history has too
Places = Counter[tuple[str, int, str]]


class HandbookInventory(Inventory):
    """The links of a real handbook for a made-up history."""

    def __init__(self, found: Sequence[FoundUrl], *, active_since: datetime) -> None:
        self._found, self._since = found, active_since
        self.urls = [each.url for each in found]
        self.ids = [scanned_link_id(url) for url in self.urls]
        self.hosts = sorted({host_key(url) for url in self.urls})
        self.host_of = [self.hosts.index(host_key(url)) for url in self.urls]

    def link(self, number: int) -> Link:
        """A link as the scan registers it."""
        return found_link(self._found[number], owner=OWNERS[number % len(OWNERS)], active_since=self._since)

    def has_marker(self, number: int) -> bool:
        """No text is expected of pages that nobody here wrote."""
        return False


def found_link(found: FoundUrl, **fields: object) -> Link:
    return a_link(scanned_link_id(found.url), found.url, places=found.places, **fields)


def found_urls(handbook: Path) -> Sequence[FoundUrl]:
    return scan_paths([handbook], reader=HandbookReader(), judge_address=PublicPolicy().judge_address).found


def all_moved(found: Iterable[FoundUrl]) -> list[MovedLink]:
    """As if every page had moved."""
    return [
        MovedLink(
            link_id=scanned_link_id(each.url),
            url=each.url,
            target=f"https://moved.example/{number}?a=1&b=2",
            hops=1,
            since=MONDAY - timedelta(weeks=1),
        )
        for number, each in enumerate(found)
    ]


def patch_and_scan(handbook: Path, copy: Path, rows: Sequence[MovedLink], links: Mapping[str, Link]) -> Patches:
    """Apply the patches with git to a copy; then every link leads where it should, and no other moved."""
    shutil.copytree(handbook, copy)
    before = _places(copy)
    made = make_patches(rows, links, copy)
    for file, diff in made.diffs.items():
        done = subprocess.run(["git", "apply", "-"], cwd=copy, input=diff, capture_output=True, check=False)
        assert done.returncode == 0, f"{file}: {done.stderr.decode()}"
    expected = Places(before)
    for move in made.patched:
        assert move.file is not None
        assert move.line is not None
        old = (move.file, move.line, move.url)
        expected[move.file, move.line, move.target] += expected.pop(old)
    assert set(_places(copy)) == set(+expected)
    return made


def _places(handbook: Path) -> Places:
    return Places((place.file, place.line, found.url) for found in found_urls(handbook) for place in found.places)
