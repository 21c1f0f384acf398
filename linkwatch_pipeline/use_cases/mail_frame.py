"""What is around the content of every mail: its title and first words, the line at its foot, and its identity."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from string import Template

from linkwatch_pipeline.domain.transitions import escaped_id

REPEATED = (
    "You may have this mail already: an earlier attempt to send it ended without an answer from the mail provider."
)
BROKEN_MARK = "border-left: 0.3em solid #d1242f; overflow-wrap: anywhere;"  # beside a title; fits light and dark pages
RECOVERED_MARK = "border-left: 0.3em solid #2da44e; overflow-wrap: anywhere;"
_DOMAIN = "linkwatch.invalid"  # of message ids; reserved by RFC 2606, so that nobody else's mails have them
# No style sheet, since mail programs drop those. Colours only where both a light and a dark page carry them.
_HTML = Template(
    """\
<!DOCTYPE html>
<html lang="en" style="color-scheme: light dark;">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
</head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em; margin: 0 auto; padding: 1em;">
<h1 style="font-size: 1.25em; line-height: 1.3; margin: 0 0 0.8em 0; padding-left: 0.6em; $mark">$title</h1>
<p style="margin: 0 0 1.2em 0;">$summary</p>
$content
<p style="font-size: 0.85em; opacity: 0.75; margin: 1.5em 0 0 0;">$footer</p>
</body>
</html>
"""
)


def message_id(name: str, *, suffix: str = "") -> str:
    """An id for the headers of mails: the same for the same name and suffix, another for any other."""
    return f"<{escaped_id(name)}{suffix}@{_DOMAIN}>"


def framed_text(title: str, summary: str, blocks: Iterable[Iterable[str]], *, footer: str) -> str:
    """A whole mail as plain text; `blocks` are lines that stand together."""
    content = ["\n".join(lines) for lines in blocks]
    return "\n\n".join([title, summary, *content, f"-- \n{footer}\n"])


def framed_html(title: str, summary: str, content: str, *, footer: str, tells_break: bool) -> str:
    """A whole mail as a page.

    Args:
        title, summary, footer: as text; `content` as HTML.
        tells_break: whether anything broke: the worst that is told is seen at a glance.
    """
    return _HTML.substitute(
        title=escape(title),
        mark=BROKEN_MARK if tells_break else RECOVERED_MARK,
        summary=escape(summary),
        content=content,
        footer=escape(footer),
    )
