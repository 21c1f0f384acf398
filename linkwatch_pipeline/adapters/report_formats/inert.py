"""What others wrote, so that it can neither be run nor mislead, whatever it is written into."""

from __future__ import annotations

import re

from linkwatch_pipeline.domain.urls import RefusedUrl, canonical_url

# With these a spreadsheet begins a formula; the wide ones are what some input methods write for them.
_FORMULA = re.compile("^[\\s'\"]*[=+\\-@\uff1d\uff0b\uff0d\uff20]")


def visible(text: str) -> str:
    """The same text with what cannot be seen, or turns the direction of what follows, written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, and how many it had."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def no_formula(text: str) -> str:
    """A text that a spreadsheet shows as it is: what would begin a formula has an apostrophe before it."""
    return f"'{text}" if _FORMULA.match(text) else text


def web_address(url: str) -> str | None:
    """Where a click may lead: http or https, in the registry's own spelling, which is ASCII; None for all else."""
    try:
        return canonical_url(url)
    except RefusedUrl:
        return None
