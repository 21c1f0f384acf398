"""Small pictures and clickable lists for the Dagster UI: drawn here as SVG, so that they need no further library."""

import base64
from collections.abc import Iterable, Mapping
from html import escape

import dagster as dg

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import COUNTED

MOST_LINES = 50
_COLOURS = {
    Outcome.REACHABLE.value: "#2e7d32",
    Outcome.BROKEN.value: "#c62828",
    Outcome.THROTTLED.value: "#f9a825",
    Outcome.UNCERTAIN.value: "#ef6c00",
    Outcome.CONTENT_CHANGED.value: "#6a1b9a",
}
_GREY = "#757575"  # jobs that ended without an observation
_LEFT, _WIDTH, _ROW = 110, 190, 22  # the picture fits the column that the UI leaves for values


def outcome_bars(by_end: Mapping[str, int]) -> dg.MarkdownMetadataValue:
    """One bar per outcome (or reason for having none) that occurred, as long as its count."""
    ends = [(end, by_end[end]) for end in COUNTED if by_end.get(end)]
    longest = max((count for _, count in ends), default=1)
    rows = "".join(_bar(number, end, count, longest) for number, (end, count) in enumerate(ends))
    height = max(len(ends), 1) * _ROW + 8
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{height}" '
        f'font-family="sans-serif" font-size="13">{rows}</svg>'
    )
    encoded = base64.b64encode(picture.encode()).decode()
    return dg.MetadataValue.md(f"![{_in_words(ends)}](data:image/svg+xml;base64,{encoded})")


def page_links(pages: Iterable[tuple[str, str, str]]) -> dg.MarkdownMetadataValue:
    """A list of (link id, URL, remark) to click on; cut after 50 lines, and it says so."""
    lines = [f"- [{link_id}](<{_clickable(url)}>) {remark}" for link_id, url, remark in pages]
    rest = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"- and {rest} more"] if rest > 0 else [])]
    return dg.MetadataValue.md("\n".join(shown) or "none")


def _bar(number: int, end: str, count: int, longest: int) -> str:
    top = number * _ROW + 4
    length = max(round(_WIDTH * count / longest), 2)
    colour = _COLOURS.get(end, _GREY)
    return (
        f'<text x="{_LEFT - 8}" y="{top + 14}" text-anchor="end" fill="{_GREY}">{escape(end)}</text>'
        f'<rect x="{_LEFT}" y="{top}" width="{length}" height="{_ROW - 5}" fill="{colour}"/>'
        f'<text x="{_LEFT + length + 6}" y="{top + 14}" fill="{_GREY}">{count:,}</text>'
    )


def _in_words(ends: Iterable[tuple[str, int]]) -> str:
    """For those who cannot see it."""
    return ", ".join(f"{end} {count}" for end, count in ends) or "nothing yet"


def _clickable(url: str) -> str:
    """A URL is kept byte for byte, so it may hold what would end the Markdown link (but no space or control)."""
    return url.translate({ord(c): f"%{ord(c):02X}" for c in "<>\\"})
