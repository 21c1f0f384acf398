"""What a page that answers says of being no real page: advice to a person, which moves no state (SPEC 4).

Only what the page says in its title or its first heading counts, and for domains that are for sale a sentence anywhere:
a manual may well explain what "404" means. The words are those of common error and parking pages.
"""

from __future__ import annotations

import html
import re
from enum import StrEnum

from linkwatch_pipeline.domain.markers import page_text


class PageHint(StrEnum):
    """Why a page may be no real one."""

    NOT_FOUND = "says_not_found"
    FOR_SALE = "says_for_sale"
    SIGN_IN = "asks_to_sign_in"
    EMPTY = "empty"


_HEADLINES = (
    re.compile(r"<title\b[^>]{0,500}>([^<]{1,300})", re.IGNORECASE),
    re.compile(r"<h1\b[^>]{0,500}>\s{0,50}(?:<[a-z][^>]{0,300}>\s{0,50}){0,3}([^<]{1,300})", re.IGNORECASE),
)
_LONGEST_PLAIN_HEADLINE = 200
_NOT_FOUND = re.compile(
    r"\b(?:error|http|status(?: code)?|page)\b[ :#-]{0,3}404\b|^\W{0,3}404\b(?!\s*(?:ways|tips|media))"
    r"|\b404\b\W{1,3}(?:error|(?:page |file )?not found|page)"
    r"|\b(?:page|file|document|site|content|resource|article|url|link)\b[^.!?]{0,40}"
    r"\b(?:not found|(?:could|can) ?not be found|(?:couldn|can)['\u2019]?t be found"
    r"|(?:does|do)(?:n['\u2019]t| not) exist"
    r"|no longer (?:exists?|available|here)|(?:is|has been) (?:gone|removed|deleted))"
    r"|^\W{0,3}(?:not found|page not found|nothing (?:was )?found(?: here)?)\W{0,3}(?:$|[|\u2013\u2014-])"
    r"|\bseite (?:wurde )?nicht gefunden\b|\bpage (?:introuvable|non trouvée)\b|\bpágina no encontrada\b"
    r"|\bpagina (?:non trovata|niet gevonden)\b",
    re.IGNORECASE,
)
_FOR_SALE = re.compile(
    r"\bdomain (?:name )?(?:is |may be |might be )?for sale\b|\b(?:buy|purchase|inquire about) this domain\b"
    r"|\bthis (?:web ?site|domain)(?: name)? (?:is|may be|might be) (?:parked|available for purchase)\b"
    r"|\bdomain (?:has expired|is parked)\b",
    re.IGNORECASE,
)
_SIGN_IN = re.compile(
    r"^\W{0,3}(?:sign|log) ?in\b(?! to win)|\b(?:sign|log) ?in\W{0,3}$|^\W{0,3}(?:anmelden|connexion)\b", re.IGNORECASE
)


def page_hints(body: bytes, *, content_type: str | None, charset: str | None) -> tuple[str, ...]:
    """What a page says, in the order of `PageHint`; nothing of what is neither HTML nor plain text.

    Args:
        body: the first bytes of a page that answered with 2xx.
        content_type: as the answer's header names it, without parameters; None is read as HTML.
        charset: as the answer's header declares it; None if it does not.
    """
    kind = (content_type or "text/html").lower()
    if kind not in ("text/html", "application/xhtml+xml", "text/plain"):
        return ()
    if not body.strip():
        return (PageHint.EMPTY.value,)
    text = page_text(body, charset)
    headlines = [text[:_LONGEST_PLAIN_HEADLINE].partition("\n")[0]] if kind == "text/plain" else _headlines(text)
    found = {
        PageHint.NOT_FOUND: any(_NOT_FOUND.search(line) for line in headlines),
        PageHint.FOR_SALE: _FOR_SALE.search(text) is not None,
        PageHint.SIGN_IN: any(_SIGN_IN.search(line) for line in headlines),
    }
    return tuple(hint.value for hint, is_said in found.items() if is_said)


def _headlines(text: str) -> list[str]:
    matches = (pattern.search(text) for pattern in _HEADLINES)
    return [" ".join(html.unescape(match[1]).split()) for match in matches if match is not None]
