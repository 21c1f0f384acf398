from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.addresses import is_public
from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher
from linkwatch_pipeline.adapters.fetch.policy import PublicPolicy
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import (
    MAX_URL_CHARACTERS,
    RefusedUrl,
    canonical_url,
    host_key,
    parse_url,
    resolve_reference,
)
from linkwatch_pipeline_tests.world.scripted_internet import OK, ScriptedInternet

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "hostile" / "urls.jsonl"

HOSTISH = st.one_of(
    st.from_regex(r"[a-z0-9.\-_%@:\[\]]{1,30}", fullmatch=True),
    st.text(max_size=20),
    st.sampled_from(["docs.example.com", "bücher.example", "127.0.0.1", "[::1]", "xn--bcher-kva.example"]),
)
URLISH = st.one_of(
    st.text(max_size=60),
    st.builds(
        "{}{}{}{}".format, st.sampled_from(["http://", "https://", "HTTP://", "ftp:", "//", ""]), HOSTISH,
        st.sampled_from(["", ":80", ":443", ":8080", ":x", ":99999"]), st.text(max_size=30).map("/{}".format),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HTTP://Docs.Example.COM", "http://docs.example.com/"),
        ("https://docs.example.com:443/a#part", "https://docs.example.com/a"),
        ("http://docs.example.com:0080/", "http://docs.example.com/"),
        ("https://docs.example.com:80/", "https://docs.example.com:80/"),
        ("http://docs.example.com./x", "http://docs.example.com/x"),
        ("http://docs.example.com?q=1", "http://docs.example.com/?q=1"),
        ("http://docs.example.com#x", "http://docs.example.com/"),
        ("http://bücher.example/ü?ß=ä", "http://xn--bcher-kva.example/%C3%BC?%C3%9F=%C3%A4"),
        ("http://docs.example.com/%zz/[x]|{y}//a/../b", "http://docs.example.com/%zz/[x]|{y}//a/../b"),
        ("http://[2606:2800:0220:0001::1]:8080/", "http://[2606:2800:220:1::1]:8080/"),
        ("http://127\u30020\u30020\u30021/", "http://127.0.0.1/"),
    ],
)
def test_a_url_has_one_canonical_spelling(text: str, canonical: str) -> None:
    assert canonical_url(text) == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", Reason.BLOCKED_URL),
        ("docs.example.com/guide", Reason.BLOCKED_URL),
        ("/guide", Reason.BLOCKED_URL),
        ("ftp://docs.example.com/", Reason.BLOCKED_SCHEME),
        ("javascript:alert(1)", Reason.BLOCKED_SCHEME),
        ("mailto:docs@example.com", Reason.BLOCKED_SCHEME),
        ("http:docs.example.com", Reason.BLOCKED_URL),
        ("http://", Reason.BLOCKED_URL),
        ("http:///guide", Reason.BLOCKED_URL),
        ("http://user:secret@docs.example.com/", Reason.BLOCKED_URL),
        ("http://@docs.example.com/", Reason.BLOCKED_URL),
        ("http://docs.example.com\\@evil.example.com/", Reason.BLOCKED_URL),
        ("http://docs.example.com/a b", Reason.BLOCKED_URL),
        ("http://docs.example.com/a\u2003b", Reason.BLOCKED_URL),
        ("http://docs.example.com/\ud800", Reason.BLOCKED_URL),
        ("http://docs%2eexample.com/", Reason.BLOCKED_URL),
        ("http://docs..example.com/", Reason.BLOCKED_URL),
        ("http://-docs.example.com/", Reason.BLOCKED_URL),
        ("http://docs.example.com:99999/", Reason.BLOCKED_PORT),
        ("http://docs.example.com:0/", Reason.BLOCKED_PORT),
        ("http://docs.example.com:٨٠/", Reason.BLOCKED_PORT),
        ("http://2130706433/", Reason.BLOCKED_ADDRESS),
        ("http://0x7f.1/", Reason.BLOCKED_ADDRESS),
        ("http://127.1/", Reason.BLOCKED_ADDRESS),
        ("http://0177.0.0.1/", Reason.BLOCKED_ADDRESS),
        ("http://256.1.1.1/", Reason.BLOCKED_ADDRESS),
        ("http://[::1%25eth0]/", Reason.BLOCKED_URL),
        ("http://[::1/", Reason.BLOCKED_URL),
        ("http://docs.example.com/" + "a" * MAX_URL_CHARACTERS, Reason.BLOCKED_URL),
        ("http://docs.example.com/" + "ü" * 500, Reason.BLOCKED_URL),  # 3,000 characters when it is sent
    ],
)
def test_other_urls_are_refused_with_a_reason(text: str, reason: Reason) -> None:
    with pytest.raises(RefusedUrl) as refused:
        parse_url(text)
    assert refused.value.reason is reason


@given(URLISH)
@example("http://[::ffff:127.0.0.1]/")
@example("http://docs.example.com/\ud800")
def test_any_text_is_a_canonical_url_or_refused(text: str) -> None:
    try:
        url = parse_url(text)
    except RefusedUrl:
        return
    assert parse_url(str(url)) == url
    assert str(url).isascii()
    assert host_key(str(url)) == url.host == url.host.lower()
    assert not set(" \t\r\n\\#") & set(url.target)


@pytest.mark.parametrize(
    ("reference", "target"),
    # RFC 3986 section 5.4, as far as it is about http
    [
        ("g", "http://a.example/b/c/g"),
        ("./g", "http://a.example/b/c/g"),
        ("g/", "http://a.example/b/c/g/"),
        ("/g", "http://a.example/g"),
        ("//g.example", "http://g.example/"),
        ("?y", "http://a.example/b/c/d;p?y"),
        ("g?y", "http://a.example/b/c/g?y"),
        ("#s", "http://a.example/b/c/d;p?q"),
        ("g#s", "http://a.example/b/c/g"),
        (";x", "http://a.example/b/c/;x"),
        (".", "http://a.example/b/c/"),
        ("./", "http://a.example/b/c/"),
        ("..", "http://a.example/b/"),
        ("../g", "http://a.example/b/g"),
        ("../..", "http://a.example/"),
        ("../../../g", "http://a.example/g"),
        ("/./g", "http://a.example/g"),
        ("/../g", "http://a.example/g"),
        ("g.", "http://a.example/b/c/g."),
        ("..g", "http://a.example/b/c/..g"),
        ("./g/.", "http://a.example/b/c/g/"),
        ("g/../h", "http://a.example/b/c/h"),
        ("g?y/../x", "http://a.example/b/c/g?y/../x"),
        ("HTTPS://Other.example/x", "https://other.example/x"),
        ("é", "http://a.example/b/c/%C3%A9"),
    ],
)
def test_a_reference_is_resolved_as_the_rfc_says(reference: str, target: str) -> None:
    assert str(resolve_reference(parse_url("http://a.example/b/c/d;p?q"), reference)) == target


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("", Reason.REDIRECT_INVALID),
        ("javascript:alert(1)", Reason.BLOCKED_SCHEME),
        ("data:,x", Reason.BLOCKED_SCHEME),
        ("http:127.0.0.1", Reason.BLOCKED_URL),
        ("http:g", Reason.BLOCKED_URL),
        ("//", Reason.BLOCKED_URL),
        ("///etc/passwd", Reason.BLOCKED_URL),
        ("/\\127.0.0.1/", Reason.BLOCKED_URL),
        ("\\\\127.0.0.1\\", Reason.BLOCKED_URL),
        ("/a\tb", Reason.BLOCKED_URL),
        ("//user@g.example/", Reason.BLOCKED_URL),
        ("//127.1/", Reason.BLOCKED_ADDRESS),
        ("/" + "a" * MAX_URL_CHARACTERS, Reason.BLOCKED_URL),
    ],
)
def test_a_reference_is_judged_as_strictly_as_a_url(reference: str, reason: Reason) -> None:
    with pytest.raises(RefusedUrl) as refused:
        resolve_reference(parse_url("http://a.example/b"), reference)
    assert refused.value.reason is reason


@given(st.text(max_size=40))
def test_any_reference_leads_to_a_canonical_url_or_is_refused(reference: str) -> None:
    try:
        target = resolve_reference(parse_url("https://a.example/b/c?d"), reference)
    except RefusedUrl:
        return
    assert parse_url(str(target)) == target


class OpenGate:
    async def enter(self, host: str) -> None:
        return

    async def leave(self, departure: Departure) -> None:
        return


def corpus() -> list[dict[str, Any]]:
    if not CORPUS.exists():
        pytest.skip("the hostile corpus is not part of the repository: ../shared/hostile/urls.jsonl is not there")
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def test_every_url_of_the_hostile_corpus_gets_the_right_verdict() -> None:
    """Through URL, policy, names, dialling and redirects, with scripted names and without a socket."""
    wrong = asyncio.run(_wrong_verdicts(corpus()))
    assert wrong == []


async def _wrong_verdicts(rows: list[dict[str, Any]]) -> list[str]:
    wrong = []
    trust = ssl.create_default_context()
    for row in rows:
        hops = [
            b"HTTP/1.1 302 Found\r\nLocation: " + location.encode() + b"\r\nContent-Length: 0\r\n\r\n"
            for location in row["redirects"] or []
        ]
        internet = ScriptedInternet(row["dns"] or {}, [*hops, OK])
        fetcher = GuardedFetcher(
            PublicPolicy(),
            clock=SystemClock(),
            user_agent="test",
            resolver=internet.resolver,
            ssl_context=trust,
            dial=internet.dial,
        )
        result = await fetcher.fetch(row["url"], OpenGate())
        allowed = result.failure is None and result.status == 200
        right = allowed == (row["verdict"] == "allow") and all(is_public(ip) for ip, _ in internet.dialled)
        if row["verdict"] == "reject" and not row["redirects"]:
            right = right and not internet.dialled
        if row["cls"] == "special-name":
            right = right and not internet.looked_up
        if result.failure is Reason.INTERNAL or not right:
            wrong.append(f"{row['cls']}: {row['url'][:80]!r} {row['why']}: {result.failure}, {internet.dialled}")
    return wrong
