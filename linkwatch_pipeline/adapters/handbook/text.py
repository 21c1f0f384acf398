"""Links in plain text: the URLs that stand in it."""

from __future__ import annotations

from linkwatch_pipeline.adapters.handbook.bare_urls import find_bare_urls
from linkwatch_pipeline.adapters.handbook.lines import LineCounter
from linkwatch_pipeline.domain.handbook import FoundLink


def text_links(text: str) -> list[FoundLink]:
    """Every URL of a text, in order."""
    counter = LineCounter(text)
    return [FoundLink(text=found.url, line=counter.line(found.start)) for found in find_bare_urls(text)]
