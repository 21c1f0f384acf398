"""Words that all mails share. What comes from outside is shown inert (`visible`), wherever it stands."""

from __future__ import annotations

from datetime import datetime
from html import escape

from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.timestamps import format_seconds

_PHRASES = {404: "404 Not Found", 410: "410 Gone", 200: "200 OK"}


def answer_of(notice: Notice) -> str:
    """The observed status, or the reason why there was none."""
    if notice.observed_status is not None:
        return _PHRASES.get(notice.observed_status, str(notice.observed_status))
    return f"none ({notice.observed_reason or 'no reason recorded'})"


def moment(at: datetime) -> str:
    return format_seconds(at).replace("T", " ").replace("Z", " UTC")


def visible(text: str) -> str:
    """The text with everything invisible (line ends, direction marks, lone surrogates) spelled out."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def anchor(url: str) -> str:
    """The URL as text, and as a link where it can be nothing but a page."""
    shown = escape(visible(url))
    if not url.startswith(("http://", "https://")) or not url.isprintable():
        return shown
    return f'<a href="{escape(url)}" rel="noreferrer">{shown}</a>'
