"""What a provider said, fit for a log: one short line, without anybody's address and without control characters."""

from __future__ import annotations

import re

_LONGEST = 300
_ADDRESS = re.compile(r"[^\s<>,;:()\[\]\"']+@[^\s<>,;:()\[\]\"']+")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def told_by_provider(before: str, words: str | bytes) -> str:
    """`before` and the provider's words. Addresses in them are somebody's, so they are left out."""
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return (before + _BLANK.sub(" ", _ADDRESS.sub("(address)", text)).strip())[:_LONGEST].strip()
