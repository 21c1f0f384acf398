"""Hostile server behaviours, byte for byte. Each is named as in the tests' table of what must be observed."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

# (request, reader, writer); the request is not typed here, since the scripts import this module.
Behaviour = Callable[[Any, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

STEP = 0.02  # seconds between trickled pieces
FLOOD_BYTES = 8 * 1024 * 1024  # where an endless server gives up, so that a broken client ends too
OK = b"HTTP/1.1 200 OK\r\n"
_FOR_EVER = 60.0


def raw(data: bytes) -> Behaviour:
    """Send these bytes and close."""

    async def behave(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


def held(data: bytes) -> Behaviour:
    """Send these bytes and keep the connection open."""

    async def behave(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await reader.read()  # until the other side goes

    return behave


def trickled(head: bytes, piece: bytes) -> Behaviour:
    """Send a head, then one piece after the other, slowly and without end."""

    async def behave(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for _ in range(int(_FOR_EVER / STEP)):
            await writer.drain()
            await asyncio.sleep(STEP)
            writer.write(piece)

    return behave


def flood(head: bytes, piece: bytes) -> Behaviour:
    """Send a head, then one piece after the other as fast as they are taken."""

    async def behave(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        pieces = piece * max(1, 4096 // len(piece))
        for _ in range(FLOOD_BYTES // len(pieces)):
            writer.write(pieces)
            await writer.drain()
            await asyncio.sleep(0)  # draining alone may never let anybody else run

    return behave


def status(code: int | str, *headers: str, body: bytes = b"body") -> Behaviour:
    """A plain answer with a status of one's choosing."""
    lines = [f"HTTP/1.1 {code} Odd", *headers, f"Content-Length: {len(body)}"]
    return raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


def redirect(*locations: bytes, code: int = 302) -> Behaviour:
    """A redirect whose Location bytes are exactly these."""
    head = b"HTTP/1.1 %d Found\r\n" % code + b"".join(b"Location: " + location + b"\r\n" for location in locations)
    return raw(head + b"Content-Length: 0\r\n\r\n")


def reset(after: bytes = b"") -> Behaviour:
    """Send these bytes, then reset the connection instead of closing it."""

    async def behave(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if after:
            writer.write(after)
            await writer.drain()
            await asyncio.sleep(STEP)  # a reset overtakes what the other side has not read yet
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return behave


async def _changes(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await status(200, body=b"visit %d" % request.visit)(request, reader, writer)


async def _slow_redirect(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.2)
    await redirect(b"/slow_redirect?%d" % (request.visit + 1))(request, reader, writer)


async def _redirect_grow(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await redirect(request.target.encode() + b"/grow")(request, reader, writer)


def _sized(body: bytes, *headers: bytes) -> bytes:
    head = OK + b"".join(header + b"\r\n" for header in headers)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


_CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
_GZIPPED = gzip.compress(b"guide-v1: learning resource " * 50)
_BOMB = gzip.compress(bytes(20 * 1024 * 1024))
_RAW_DEFLATE = zlib.compress(b"guide-v1: learning resource", wbits=-15)

BEHAVIOURS: dict[str, Behaviour] = {
    "accept_rst": reset(),
    "rst_at_once": reset(),
    "rst_in_headers": reset(OK + b"Content-Le"),
    "rst_in_body": reset(OK + b"Content-Length: 100\r\n\r\nhalf"),
    "close_at_once": raw(b""),
    "close_in_headers": raw(OK + b"Content-Le"),
    "banner_ssh": held(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "banner_smtp": held(b"220 mail.example.com ESMTP\r\n"),
    "http09": raw(b"<html>no status line at all</html>"),
    "http2_preface": held(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"),
    "bogus_charset": raw(_sized(b"guide", b"Content-Type: text/html; charset=klingon-8")),
    "br_bomb": raw(_sized(b"\x8b\x00\x80not really brotli", b"Content-Encoding: br")),
    "changes": _changes,
    "chunked_ok": raw(_CHUNKED + b"5\r\nguide\r\n0\r\n\r\n"),
    "chunked_bad": raw(_CHUNKED + b"zz\r\nguide\r\n0\r\n\r\n"),
    "chunked_endless": flood(_CHUNKED, b"1000\r\n" + b"x" * 0x1000 + b"\r\n"),
    "chunked_tiny": flood(_CHUNKED, b"1;" + b"e" * 200 + b"\r\nx\r\n"),
    "chunked_extension_flood": flood(_CHUNKED + b"1;", b"e" * 4096),
    "chunked_no_end": held(_CHUNKED + b"5\r\nguide\r\n"),
    "chunked_trailer_flood": flood(_CHUNKED + b"5\r\nguide\r\n0\r\n", b"X-Trailer: " + b"t" * 1000 + b"\r\n"),
    "cl_and_te": raw(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nguide\r\n0\r\n\r\n"),
    "cl_conflicting": raw(OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nguide"),
    "cl_negative": raw(OK + b"Content-Length: -5\r\n\r\nguide"),
    "cl_huge": held(OK + b"Content-Length: 99999999999999999999\r\n\r\nguide"),
    "cl_too_long": raw(OK + b"Content-Length: 100\r\n\r\nguide"),
    "cl_too_short": raw(OK + b"Content-Length: 5\r\n\r\nguide and a surplus"),
    "deflate_raw": raw(_sized(_RAW_DEFLATE, b"Content-Encoding: deflate")),
    "deflate_zlib": raw(_sized(zlib.compress(b"guide-v1: learning resource"), b"Content-Encoding: deflate")),
    "gzip": raw(_sized(_GZIPPED, b"Content-Encoding: gzip")),
    "gzip_bomb": raw(_sized(_BOMB, b"Content-Encoding: gzip")),
    "gzip_damaged": raw(_sized(_GZIPPED[:-8] + bytes(8), b"Content-Encoding: gzip")),
    "gzip_identity": raw(_sized(_GZIPPED, b"Content-Encoding: identity, gzip")),
    "gzip_lie": raw(_sized(b"guide, not compressed at all", b"Content-Encoding: gzip")),
    "gzip_nested": raw(_sized(gzip.compress(_GZIPPED), b"Content-Encoding: gzip, gzip")),
    "gzip_truncated": raw(_sized(_GZIPPED[:-12], b"Content-Encoding: gzip")),
    "header_many": raw(_sized(b"guide", *(b"X-%d: v" % number for number in range(1000)))),
    "header_bomb": flood(OK, b"X-Bomb: " + b"b" * 1000 + b"\r\n"),
    "header_line_endless": flood(OK + b"X-Line: ", b"l" * 4096),
    "flood_1xx": flood(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "infinite_body": flood(OK + b"\r\n", b"x" * 65536),
    "body_64k": raw(_sized(b"x" * 65536)),
    "body_64k_held": held(OK + b"\r\n" + b"x" * 65536),
    "body_64k_and_one": raw(_sized(b"x" * 65537)),
    "lf_only": raw(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nguide"),
    "nonascii_value": raw(_sized(b"guide", b"Content-Type: text/html; x=\xe9", b"X-Odd: caf\xe9 \xc3\xa9 \x1b[31m")),
    "nul_in_header": raw(OK + b"X-Nul: a\x00b\r\n\r\nguide"),
    "ok": raw(_sized(b"guide-v1: learning resource", b"Content-Type: text/plain; charset=utf-8")),
    "ok_empty": raw(_sized(b"")),
    "ok_http10": raw(b"HTTP/1.0 200 OK\r\n\r\nguide"),
    "redirect_200": raw(OK + b"Location: /ok\r\nContent-Length: 5\r\n\r\nguide"),
    "redirect_300": redirect(b"/ok", code=300),
    "redirect_304": redirect(b"/ok", code=304),
    "redirect_305": redirect(b"/ok", code=305),
    "redirect_301": redirect(b"/ok", code=301),
    "redirect_303": redirect(b"/ok", code=303),
    "redirect_307": redirect(b"/ok", code=307),
    "redirect_308": redirect(b"/ok", code=308),
    "redirect_backslash": redirect(b"http:\\\\evil.example.com\\"),
    "redirect_credentials": redirect(b"http://user:secret@hostile.example.com/ok"),
    "redirect_data": redirect(b"data:text/html,x"),
    "redirect_dots": redirect(b"a/../../ok"),
    "redirect_empty": redirect(b""),
    "redirect_file": redirect(b"file:///etc/passwd"),
    "redirect_fragment": redirect(b"/ok#part"),
    "redirect_grow": _redirect_grow,
    "redirect_infinite_body": flood(b"HTTP/1.1 302 Found\r\nLocation: /ok\r\n\r\n", b"x" * 65536),
    "redirect_javascript": redirect(b"javascript:alert(1)"),
    "redirect_long": redirect(b"/" + b"a" * 3000),
    "redirect_metadata": redirect(b"http://169.254.169.254/latest/meta-data/"),
    "redirect_none": redirect(),
    "redirect_noscheme": redirect(b"//hostile.example.com/ok"),
    "redirect_query_only": redirect(b"?again"),
    "redirect_refresh": raw(_sized(b"guide", b"Refresh: 0; url=/s404")),
    "redirect_relative": redirect(b"ok"),
    "redirect_self": redirect(b"/redirect_self"),
    "redirect_self_case": redirect(b"HTTP://HOSTILE.example.com:80/redirect_self_case#top"),
    "redirect_space": redirect(b"/o k"),
    "redirect_two": redirect(b"/ok", b"/ok_empty"),
    "redirect_two_same": redirect(b"/ok", b"/ok"),
    "redirect_utf8": redirect("/nicht-da-é".encode()),
    "redirect_latin1": redirect(b"/nicht-da-\xe9"),
    "redirect_unresolvable": redirect(b"http://nowhere.example.com/"),
    "loop_a": redirect(b"/loop_b"),
    "loop_b": redirect(b"/loop_a"),
    "chain4_a": redirect(b"/chain3_a"),
    "chain3_a": redirect(b"/chain3_b"),
    "chain3_b": redirect(b"/chain3_c"),
    "chain3_c": redirect(b"/ok"),
    "s000": status("000"),
    "s101": raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
    "s103_then_200": raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + _sized(b"guide")),
    "s204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "s205": held(b"HTTP/1.1 205 Reset Content\r\n\r\n"),
    "s206": status(206, "Content-Range: bytes 0-3/100"),
    "s304": raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "s401": status(401, 'WWW-Authenticate: Basic realm="x"'),
    "s403": status(403),
    "s403_challenge": status(403, "cf-mitigated: challenge"),
    "s403_mark": status(403, "CF-RAY: 1", body=b"<script>window._cf_chl_opt={}</script>"),
    "s200_mark": status(200, "CF-RAY: 1", body=b"<script>window._cf_chl_opt={}</script>"),
    "s202_waf": status(202, "x-amzn-waf-action: challenge", body=b""),
    "s403_spent": status(403, "X-RateLimit-Remaining: 0"),
    "s404": status(404),
    "s404_trickle": trickled(b"HTTP/1.1 404 Not Found\r\n\r\n", b"x"),
    "s404_reset": reset(b"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nhalf"),
    "s404_bad_chunk": raw(b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "s410": status(410),
    "s429_absurd": status(429, "Retry-After: 99999999999999999999"),
    "s429_seconds": status(429, "Retry-After: 120"),
    "s429_none": status(429),
    "s500": status(500),
    "s503_retry": status(503, "Retry-After: 7"),
    "s503_ratelimit": status(503, 'RateLimit: "default";r=0;t=30'),
    "s999": status(999),
    "s4040": status("4040"),
    "silent": held(b""),
    "slow_1xx": trickled(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "slow_redirect": _slow_redirect,
    "soft404": status(200, body=b"<h1>Page not found</h1>"),
    "space_before_colon": raw(OK + b"Content-Length : 5\r\n\r\nguide"),
    "te_unknown": raw(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "trickle_body": trickled(OK + b"Content-Length: 100000\r\n\r\n", b"x"),
    "trickle_headers": trickled(OK, b"X: y\r\n"),
}
