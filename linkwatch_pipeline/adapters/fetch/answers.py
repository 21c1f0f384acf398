"""What an answer's headers and bytes say: pauses asked for, challenges, media type, and one layer of compression."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from linkwatch_pipeline.domain.fetching import MAX_BODY_BYTES

_MOST_TEXT = 200  # of a header that is kept
_CHALLENGE_HEADERS = {
    "cf-mitigated": ("challenge",),
    "x-amzn-waf-action": ("challenge", "captcha"),
    "x-vercel-mitigated": ("challenge",),
}
# A mark in the page counts only beside the header that the same vendor always sends, and never on a 2xx, where such
# scripts also stand on ordinary pages.
_CHALLENGE_MARKS = (
    ("cf-ray", b"_cf_chl_opt"),
    ("x-iinfo", b"Incapsula incident ID"),
    ("x-datadome", b"captcha-delivery.com"),
)
_REMAINING_HEADERS = ("x-ratelimit-remaining", "x-rate-limit-remaining", "ratelimit-remaining")
# `"default";r=0;t=30` (draft 8 and later) and `limit=10, remaining=0, reset=30` (draft 3 to 6)
_NOTHING_LEFT = re.compile(r"(?:^|[;,\s])(?:r|remaining)\s*=\s*0+(?:\.0*)?\s*(?:$|[;,])", re.IGNORECASE)
# zlib's window bits. 47: gzip or zlib by its header; some servers send "deflate" without any.
_WINDOWS = {"gzip": (47,), "x-gzip": (47,), "deflate": (47, -15)}
_PIECE = 1024  # bytes
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Headers:
    """Header fields in the order they came, names in lower case."""

    fields: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, raw: Iterable[tuple[bytes, bytes]]) -> Headers:
        """From the bytes as they came."""
        return cls(tuple((name.decode("latin-1").lower(), value) for name, value in raw))

    def all(self, name: str) -> list[bytes]:
        """Every value of a field."""
        return [value for field, value in self.fields if field == name]

    def text(self, name: str) -> str | None:
        """A field's values joined by commas, cut and printable; None if it is absent."""
        values = self.all(name)
        return _printable(b", ".join(values))[:_MOST_TEXT] if values else None


@dataclass(frozen=True, slots=True)
class Content:
    """Body bytes that are judged, and whether they are all there is."""

    body: bytes
    complete: bool


def is_challenged(status: int, headers: Headers, body: bytes) -> bool:
    """Whether a bot wall answered instead of the page: a named header or mark, never mere emptiness."""
    for name, actions in _CHALLENGE_HEADERS.items():
        if (headers.text(name) or "").strip().lower() in actions:
            return True
    if 200 <= status <= 299:
        return False
    return any(headers.all(name) and mark in body for name, mark in _CHALLENGE_MARKS)


def is_rate_limit_spent(headers: Headers) -> bool:
    """Whether rate-limit headers say that nothing is left."""
    if any((headers.text(name) or "").strip() == "0" for name in _REMAINING_HEADERS):
        return True
    return _NOTHING_LEFT.search(headers.text("ratelimit") or "") is not None


def media_type(headers: Headers) -> tuple[str | None, str | None]:
    """The media type in lower case and the declared charset; None where absent."""
    text = headers.text("content-type")
    if text is None:
        return None, None
    charset = _CHARSET.search(text)
    return text.partition(";")[0].strip().lower() or None, charset[1] if charset else None


def decode(raw: bytes, *, complete: bool, headers: Headers) -> Content:
    """Take one layer of gzip or deflate off, although identity was asked for; anything else stays as it is.

    What stays packed cannot be read, so it is not all that the page says: incomplete. Plain text that only claims to be
    packed is the page itself.

    Args: complete: whether `raw` is the whole body.
    """
    named = (part.strip().lower() for part in (headers.text("content-encoding") or "").split(","))
    encodings = [name for name in named if name not in ("", "identity")]
    if not encodings or not raw:
        return Content(raw, complete)
    for window in _WINDOWS.get(encodings[0], ()) if len(encodings) == 1 else ():
        content = _inflate(raw, window, complete)
        if content is not None:
            return content
    return Content(raw, complete and _is_text(raw))


def _inflate(raw: bytes, window: int, complete: bool) -> Content | None:
    """Piece by piece, so that what came before a defect is kept; None if not a byte could be decoded."""
    inflater = zlib.decompressobj(window)
    body = b""
    for start in range(0, len(raw), _PIECE):
        before, piece = inflater.copy(), raw[start : start + _PIECE]
        try:
            body += inflater.decompress(piece, MAX_BODY_BYTES + 1 - len(body))
        except zlib.error:
            body += _until_defect(before, piece, MAX_BODY_BYTES - len(body))
            return Content(body, False) if body else None
        if len(body) > MAX_BODY_BYTES:
            return Content(body[:MAX_BODY_BYTES], False)
    return Content(body, complete and inflater.eof and not inflater.unused_data)


def _until_defect(inflater: zlib._Decompress, piece: bytes, room: int) -> bytes:
    """Byte by byte: what a piece with a defect holds before it, at most `room` bytes."""
    body = b""
    try:
        for position in range(len(piece)):
            if len(body) < room:
                body += inflater.decompress(piece[position : position + 1], room - len(body))
    except zlib.error:
        pass
    return body


def _is_text(raw: bytes) -> bool:
    return not any(byte < 0x20 and byte not in b"\t\n\f\r" for byte in raw)


def _printable(value: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in value)
