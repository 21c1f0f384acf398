"""Links of a handbook, and a world that answers for their hosts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from linkwatch_pipeline.adapters.fetch.policy import PublicPolicy
from linkwatch_pipeline.adapters.handbook.reader import HandbookReader
from linkwatch_pipeline.use_cases.scan import scan_paths

EXCERPT = Path(__file__).resolve().parents[1] / "data" / "handbook" / "18f"
MOST_ON_A_HOST = 5  # of the links of a small play, so that no host decides how long it takes


def links_of(handbook: Path) -> list[str]:
    """What `linkwatch scan` finds in it."""
    found = scan_paths([handbook], reader=HandbookReader(), judge_address=PublicPolicy().judge_address).found
    return [each.url for each in found]


def some_links(most: int) -> list[str]:
    """Of the excerpt of the 18F handbook, few of one host."""
    seen: Counter[str] = Counter()
    chosen: list[str] = []
    for url in links_of(EXCERPT):
        host, _ = place_of(url)
        if seen[host] < MOST_ON_A_HOST and len(chosen) < most:
            seen[host] += 1
            chosen.append(url)
    return chosen


def place_of(url: str) -> tuple[str, str]:
    """Its host, and what is asked for there."""
    parts = urlsplit(url)
    return str(parts.hostname), (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def sites_of(links: list[str]) -> dict[str, Any]:
    """By host, as JSON (see `world.scripts`): some pages are gone, some hosts cannot serve, the rest is fine."""
    sites: dict[str, Any] = {}
    for number, url in enumerate(links):
        host, target = place_of(url)
        sites.setdefault(host, {"pages": {}})["pages"][target] = _status(number)
    return sites


def outcome_of(status: int) -> str:
    """What a look at such a page has to come to."""
    return {404: "broken", 410: "broken", 200: "reachable"}.get(status, "uncertain")


def _status(number: int) -> int:
    return 404 if number % 10 == 3 else 410 if number % 30 == 7 else 503 if number % 20 == 11 else 200
