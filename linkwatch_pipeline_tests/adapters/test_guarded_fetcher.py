from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, Policy, PublicPolicy
from linkwatch_pipeline.adapters.fetch.resolver import MOST_THREADS, SystemResolver
from linkwatch_pipeline.domain.fetching import MAX_BODY_BYTES, FetchResult, HopDeferred, HopRefused
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.observations import RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome, classify
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.ports import Clock
from linkwatch_pipeline_tests.adapters.test_fetch_deadlines import ENDLESS
from linkwatch_pipeline_tests.virtual_clock import VirtualClock
from linkwatch_pipeline_tests.world import Answer, Site, World
from linkwatch_pipeline_tests.world.hostile import BEHAVIOURS, held, status
from linkwatch_pipeline_tests.world.scripted_internet import ScriptedInternet

HOSTILE = "hostile.example.com"
AGENT = "linkwatch-test/1 (+https://linkwatch.example.com/; complaints to ops@example.com)"
PATIENT = timedelta(
    seconds=60
)  # a machine that stalls fails nobody; what has to run into it is in test_fetch_deadlines
GUIDE = b"guide-v1: learning resource"


async def echo(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sets a cookie and answers with the request's own headers."""
    lines = "\n".join(f"{name}: {value}" for name, value in sorted(request.headers.items()))
    await status(200, "Set-Cookie: id=1", body=lines.encode())(request, reader, writer)


async def hang_up_on_hello(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hears TLS begin and ends the connection in order."""
    await reader.read(65536)


async def reset_on_hello(request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(65536)
    await BEHAVIOURS["rst_at_once"](request, reader, writer)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    hostile = Site(
        {
            **{f"/{name}": behaviour for name, behaviour in BEHAVIOURS.items()},
            "/redirect_grow/grow": BEHAVIOURS["redirect_grow"],
            "/redirect_grow/grow/grow": BEHAVIOURS["redirect_grow"],
            "/redirect_grow/grow/grow/grow": BEHAVIOURS["redirect_grow"],
            "/echo": echo,
            "/echo-again": Answer.redirect("/echo"),
            "/elsewhere": Answer.redirect("http://guide.example.com/"),
            "/to-tls": Answer.redirect("https://guide.example.com/"),
            "/to-http": Answer.redirect("http://guide.example.com/unreached"),
            "/to-private": Answer.redirect("http://private.example.com/"),
            "/slow": Answer(delay=0.2),
        }
    )
    sites = {
        HOSTILE: hostile,
        "guide.example.com": Site(otherwise=200),
        "private.example.com": Site(otherwise=200),
        "down.example.com": Site(down=True),
        "wrong-name.example.com": Site(certificate="wrong_name"),
        "old-style.example.com": Site(certificate="common_name"),
        "expired.example.com": Site(certificate="expired"),
        "unknown-ca.example.com": Site(certificate="unknown_ca"),
        "plain.example.com": Site(certificate="none", greeting=held(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        "no-tls.example.com": Site(certificate="none", greeting=hang_up_on_hello),
        "reset-tls.example.com": Site(certificate="none", greeting=reset_on_hello),
        "proxy.example.com": Site(otherwise=200),
        **{name.replace("_", "-") + ".example.com": Site(greeting=BEHAVIOURS[name]) for name in GREETINGS},
    }
    with World(sites).in_thread() as open_world:
        yield open_world


GREETINGS = ("accept_rst", "banner_ssh", "banner_smtp", "http2_preface", "close_at_once")


class Gate:
    """Lets everybody in and remembers it. `refuse_at` raises the error instead of the so-manieth entry (from 0)."""

    def __init__(self, refuse_at: int | None = None, error: Exception | None = None) -> None:
        self.entered: list[str] = []
        self.left: list[Departure] = []
        self._refuse_at = refuse_at
        self._error = error

    async def enter(self, host: str) -> None:
        assert len(self.entered) == len(self.left), "entered without having left"
        if len(self.entered) == self._refuse_at and self._error is not None:
            raise self._error
        self.entered.append(host)

    async def leave(self, departure: Departure) -> None:
        self.left.append(departure)


def fetcher_of(world: World, *, policy: Policy | None = None, **changes: Any) -> GuardedFetcher:
    parts: dict[str, Any] = {
        "clock": SystemClock(),
        "user_agent": AGENT,
        "resolver": world.resolver,
        "ssl_context": world.ssl_context,
        "deadline": PATIENT,
    }
    return GuardedFetcher(policy or world.policy, **{**parts, **changes})


def fetch(world: World, url: str, gate: Gate | None = None, **changes: Any) -> FetchResult:
    return asyncio.run(fetcher_of(world, **changes).fetch(url, gate or Gate()))


def verdict(result: FetchResult) -> tuple[Outcome, Reason | None]:
    judged = classify(
        result.status, content_complete=result.content_complete, failure=result.failure, challenged=result.challenged
    )
    return judged.outcome, judged.reason


def targets(world: World, host: str) -> list[str | None]:
    """What a host was asked for, once all connections have ended."""
    asyncio.run(world.settle())
    return world.log.targets(host)


# name: (outcome, reason, status). As shared by the user's table of hostile servers, and some more.
EXPECTED: dict[str, tuple[str, str | None, int | None]] = {
    "bogus_charset": ("reachable", None, 200),
    "body_64k": ("reachable", None, 200),
    "body_64k_and_one": ("reachable", None, 200),
    "body_64k_held": ("reachable", None, 200),
    "br_bomb": ("reachable", None, 200),
    "chain3_a": ("reachable", None, 200),
    "chain4_a": ("uncertain", "too_many_redirects", 302),
    "changes": ("reachable", None, 200),
    "chunked_bad": ("uncertain", "protocol", 200),
    "chunked_endless": ("reachable", None, 200),
    "chunked_extension_flood": ("uncertain", "oversize_trailers", 200),
    "chunked_ok": ("reachable", None, 200),
    "chunked_tiny": ("reachable", None, 200),
    "chunked_trailer_flood": ("uncertain", "oversize_trailers", 200),
    "cl_and_te": ("reachable", None, 200),
    "cl_conflicting": ("uncertain", "protocol", None),
    "cl_negative": ("uncertain", "protocol", None),
    "cl_too_long": ("uncertain", "incomplete_body", 200),
    "cl_too_short": ("reachable", None, 200),
    "close_at_once": ("uncertain", "connection_reset", None),
    "close_in_headers": ("uncertain", "protocol", None),
    "flood_1xx": ("uncertain", "oversize_headers", None),
    "gzip_bomb": ("reachable", None, 200),
    "gzip_damaged": ("reachable", None, 200),
    "gzip_identity": ("reachable", None, 200),
    "gzip_lie": ("reachable", None, 200),
    "gzip_nested": ("reachable", None, 200),
    "gzip_truncated": ("reachable", None, 200),
    "header_many": ("uncertain", "oversize_headers", None),
    "header_bomb": ("uncertain", "oversize_headers", None),
    "header_line_endless": ("uncertain", "oversize_headers", None),
    "http09": ("uncertain", "protocol", None),
    "infinite_body": ("reachable", None, 200),
    "lf_only": ("reachable", None, 200),
    "loop_a": ("uncertain", "redirect_loop", 302),
    "loop_b": ("uncertain", "redirect_loop", 302),
    "nonascii_value": ("reachable", None, 200),
    "nul_in_header": ("uncertain", "protocol", None),
    "ok": ("reachable", None, 200),
    "ok_empty": ("reachable", None, 200),
    "ok_http10": ("reachable", None, 200),
    "redirect_200": ("reachable", None, 200),
    "redirect_300": ("uncertain", "unexpected_status", 300),
    "redirect_301": ("reachable", None, 200),
    "redirect_303": ("reachable", None, 200),
    "redirect_304": ("uncertain", "unexpected_status", 304),
    "redirect_305": ("uncertain", "unexpected_status", 305),
    "redirect_307": ("reachable", None, 200),
    "redirect_308": ("reachable", None, 200),
    "redirect_backslash": ("uncertain", "blocked_url", 302),
    "redirect_credentials": ("uncertain", "blocked_url", 302),
    "redirect_data": ("uncertain", "blocked_scheme", 302),
    "redirect_dots": ("reachable", None, 200),
    "redirect_empty": ("uncertain", "redirect_invalid", 302),
    "redirect_file": ("uncertain", "blocked_scheme", 302),
    "redirect_fragment": ("reachable", None, 200),
    "redirect_grow": ("uncertain", "too_many_redirects", 302),
    "redirect_infinite_body": ("reachable", None, 200),
    "redirect_javascript": ("uncertain", "blocked_scheme", 302),
    "redirect_latin1": ("broken", "gone", 404),
    "redirect_long": ("uncertain", "blocked_url", 302),
    "redirect_metadata": ("uncertain", "blocked_address", 302),
    "redirect_none": ("uncertain", "redirect_invalid", 302),
    "redirect_noscheme": ("reachable", None, 200),
    "redirect_query_only": ("uncertain", "redirect_loop", 302),
    "redirect_refresh": ("reachable", None, 200),
    "redirect_relative": ("reachable", None, 200),
    "redirect_self": ("uncertain", "redirect_loop", 302),
    "redirect_self_case": ("uncertain", "redirect_loop", 302),
    "redirect_space": ("uncertain", "blocked_url", 302),
    "redirect_two": ("uncertain", "redirect_invalid", 302),
    "redirect_two_same": ("reachable", None, 200),
    "redirect_unresolvable": ("uncertain", "dns", 302),
    "redirect_utf8": ("broken", "gone", 404),
    "rst_at_once": ("uncertain", "connection_reset", None),
    "rst_in_body": ("uncertain", "connection_reset", 200),
    "rst_in_headers": ("uncertain", "connection_reset", None),
    "s000": ("uncertain", "protocol", None),
    "s101": ("uncertain", "protocol", None),
    "s103_then_200": ("reachable", None, 200),
    "s200_mark": ("reachable", None, 200),
    "s202_waf": ("uncertain", "bot_challenge", 202),
    "s204": ("reachable", None, 204),
    "s205": ("reachable", None, 205),
    "s206": ("reachable", None, 206),
    "s304": ("uncertain", "unexpected_status", 304),
    "s401": ("uncertain", "auth", 401),
    "s403": ("uncertain", "auth", 403),
    "s403_challenge": ("uncertain", "bot_challenge", 403),
    "s403_mark": ("uncertain", "bot_challenge", 403),
    "s403_spent": ("uncertain", "auth", 403),
    "s404": ("broken", "gone", 404),
    "s404_bad_chunk": ("broken", "gone", 404),
    "s404_reset": ("broken", "gone", 404),
    "s410": ("broken", "gone", 410),
    "s4040": ("uncertain", "protocol", None),
    "s429_absurd": ("throttled", "rate_limited", 429),
    "s429_none": ("throttled", "rate_limited", 429),
    "s429_seconds": ("throttled", "rate_limited", 429),
    "s500": ("uncertain", "server_error", 500),
    "s503_ratelimit": ("uncertain", "server_error", 503),
    "s503_retry": ("uncertain", "server_error", 503),
    "s999": ("uncertain", "unexpected_status", 999),
    "soft404": ("reachable", None, 200),
    "space_before_colon": ("uncertain", "protocol", None),
    "te_unknown": ("uncertain", "protocol", None),
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_hostile_server_gets_the_right_observation(world: World, name: str) -> None:
    gate = Gate()
    result = fetch(world, f"http://{HOSTILE}/{name}", gate)
    outcome, reason = verdict(result)
    assert (outcome, reason, result.status) == EXPECTED[name]
    assert len(result.body) <= MAX_BODY_BYTES
    assert len(gate.entered) == len(gate.left) > 0


def test_every_behaviour_is_in_the_table() -> None:
    told_elsewhere = {*GREETINGS, *ENDLESS, "chain3_b", "chain3_c", "deflate_raw", "deflate_zlib", "gzip"}
    told_elsewhere |= {"s404_trickle", "slow_redirect"}
    assert set(BEHAVIOURS) - told_elsewhere <= set(EXPECTED)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("accept-rst", Reason.CONNECTION_RESET),
        ("banner-ssh", Reason.PROTOCOL),
        ("banner-smtp", Reason.PROTOCOL),
        ("http2-preface", Reason.PROTOCOL),
        ("close-at-once", Reason.CONNECTION_RESET),
        ("down", Reason.CONNECTION_REFUSED),
        ("not-in-this-world", Reason.DNS),
    ],
)
def test_a_port_that_does_not_speak_http_has_its_reason(world: World, host: str, reason: Reason) -> None:
    result = fetch(world, f"http://{host}.example.com/")
    assert (result.status, result.failure) == (None, reason)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("wrong-name", Reason.TLS_NAME),
        ("old-style", Reason.TLS_NAME),
        ("expired", Reason.TLS_EXPIRED),
        ("unknown-ca", Reason.TLS),
        ("plain", Reason.TLS),
        ("no-tls", Reason.TLS),
        ("reset-tls", Reason.CONNECTION_RESET),
        ("down", Reason.CONNECTION_REFUSED),
    ],
)
def test_a_bad_certificate_has_its_reason(world: World, host: str, reason: Reason) -> None:
    result = fetch(world, f"https://{host}.example.com/")
    assert (result.status, result.failure) == (None, reason)


def test_a_good_certificate_is_the_names_although_an_address_is_dialled(world: World) -> None:
    result = fetch(world, f"https://{HOSTILE}/ok?tls")
    assert (result.status, result.failure, result.body) == (200, None, GUIDE)
    assert result.tls_not_after is not None
    assert result.tls_not_after > datetime(2026, 1, 1, tzinfo=UTC)
    asyncio.run(world.settle())
    (hit,) = [hit for hit in world.log.of(HOSTILE) if hit.scheme == "https" and hit.target == "/ok?tls"]
    assert hit.headers["host"] == HOSTILE


def test_a_public_certificate_authority_is_not_trusted_beside_the_one_given(world: World) -> None:
    assert fetch(world, f"https://{HOSTILE}/ok", ssl_context=ssl.create_default_context()).failure is Reason.TLS


# --- content ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["deflate_raw", "deflate_zlib"])
def test_a_compressed_body_nobody_asked_for_is_decoded_once(world: World, name: str) -> None:
    result = fetch(world, f"http://{HOSTILE}/{name}")
    assert (result.body, result.content_complete) == (GUIDE, True)
    assert result.bytes_read != len(GUIDE)


def test_two_layers_of_compression_are_left_alone(world: World) -> None:
    assert fetch(world, f"http://{HOSTILE}/gzip").body.startswith(GUIDE)
    assert fetch(world, f"http://{HOSTILE}/gzip_nested").body.startswith(b"\x1f\x8b")


@pytest.mark.parametrize(
    ("name", "size", "complete"),
    [
        ("ok_empty", 0, True),
        ("body_64k", MAX_BODY_BYTES, True),
        ("body_64k_and_one", MAX_BODY_BYTES, False),
        ("infinite_body", MAX_BODY_BYTES, False),
        ("chunked_endless", MAX_BODY_BYTES, False),
        ("gzip_bomb", MAX_BODY_BYTES, False),
        ("cl_too_short", 5, True),
        ("s206", 4, False),
    ],
)
def test_at_most_64_kib_are_kept_and_a_cut_is_said(world: World, name: str, size: int, complete: bool) -> None:
    result = fetch(world, f"http://{HOSTILE}/{name}")
    assert (len(result.body), result.content_complete) == (size, complete)


@pytest.mark.parametrize("name", ["gzip_truncated", "gzip_damaged"])
def test_a_broken_gzip_keeps_what_could_be_decoded_and_is_incomplete(world: World, name: str) -> None:
    result = fetch(world, f"http://{HOSTILE}/{name}")
    assert result.body.startswith(GUIDE)
    assert not result.content_complete


@pytest.mark.parametrize(
    ("name", "complete"), [("br_bomb", False), ("gzip_nested", False), ("gzip_lie", True), ("gzip_identity", True)]
)
def test_what_stays_packed_was_not_all_read_so_no_marker_is_missed_in_it(
    world: World, name: str, complete: bool
) -> None:
    assert fetch(world, f"http://{HOSTILE}/{name}").content_complete is complete


def test_media_type_and_charset_are_told_apart_and_odd_bytes_are_escaped(world: World) -> None:
    plain = fetch(world, f"http://{HOSTILE}/ok")
    assert (plain.content_type, plain.charset) == ("text/plain", "utf-8")
    odd = fetch(world, f"http://{HOSTILE}/bogus_charset")
    assert (odd.content_type, odd.charset) == ("text/html", "klingon-8")
    assert fetch(world, f"http://{HOSTILE}/ok_empty").content_type is None
    internet = ScriptedInternet({"a.example.net": ["1.1.1.1"]}, [b"HTTP/1.1 429 x\r\nRetry-After: \xe9\x1b[0m\r\n\r\n"])
    assert scripted(internet, "http://a.example.net/").retry_after == "\\xe9\\x1b[0m"


# --- redirects --------------------------------------------------------------------------------------------------------


def test_the_redirect_chain_is_part_of_the_answer(world: World) -> None:
    result = fetch(world, f"http://{HOSTILE}/chain3_a")
    assert result.redirects == tuple(
        RedirectHop(url=f"http://{HOSTILE}/chain3_{letter}", status=302) for letter in "abc"
    )
    assert result.final_url == f"http://{HOSTILE}/ok"


def test_every_hop_goes_through_the_gate_with_its_own_host(world: World) -> None:
    gate = Gate()
    assert fetch(world, f"http://{HOSTILE}/elsewhere", gate).status == 200
    assert gate.entered == [HOSTILE, "guide.example.com"]
    assert [departure.answered for departure in gate.left] == [True, True]


def test_a_redirect_may_lead_into_tls_but_never_out_of_it(world: World) -> None:
    assert fetch(world, f"http://{HOSTILE}/to-tls").status == 200
    result = fetch(world, f"https://{HOSTILE}/to-http")
    assert (result.status, result.failure) == (302, Reason.DOWNGRADE)
    assert "/unreached" not in targets(world, "guide.example.com")


def test_a_redirect_body_is_never_read(world: World) -> None:
    result = fetch(world, f"http://{HOSTILE}/redirect_infinite_body")
    assert (result.status, result.bytes_read) == (200, len(GUIDE))


def test_nothing_is_sent_but_what_is_needed_and_no_cookie_comes_back(world: World) -> None:
    body = fetch(world, f"http://{HOSTILE}/echo-again").body.decode()
    assert body.splitlines() == [
        "accept: */*",
        "accept-encoding: identity",
        "connection: close",
        f"host: {HOSTILE}",
        f"user-agent: {AGENT}",
    ]


# --- the boundary -----------------------------------------------------------------------------------------------------


def scripted(
    internet: ScriptedInternet,
    url: str,
    gate: Gate | None = None,
    policy: Policy | None = None,
    clock: Clock | None = None,
) -> FetchResult:
    fetcher = GuardedFetcher(
        policy or PublicPolicy(),
        clock=clock or SystemClock(),
        user_agent=AGENT,
        resolver=internet.resolver,
        ssl_context=ssl.create_default_context(),
        dial=internet.dial,
    )
    return asyncio.run(fetcher.fetch(url, gate or Gate()))


def test_a_name_is_looked_up_once_and_the_judged_address_is_dialled() -> None:
    internet = ScriptedInternet({"a.example.net": [["93.184.216.34"], ["127.0.0.1"]]})
    assert scripted(internet, "http://a.example.net/x").status == 200
    assert internet.looked_up == ["a.example.net"]
    assert internet.dialled == [("93.184.216.34", 80)]
    assert internet.requests[0].startswith(b"GET /x HTTP/1.1\r\nHost: a.example.net\r\n")


def test_one_private_answer_among_public_ones_refuses_the_name() -> None:
    internet = ScriptedInternet({"a.example.net": ["93.184.216.34", "1.1.1.1", "10.0.0.1"]})
    assert scripted(internet, "http://a.example.net/").failure is Reason.BLOCKED_ADDRESS
    assert internet.dialled == []


def test_a_redirect_to_the_metadata_service_is_refused_without_a_connection() -> None:
    hop = b"HTTP/1.1 302 Found\r\nLocation: http://%s/latest/\r\n\r\n"
    names = {"a.example.net": ["1.1.1.1"], "sneaky.example.net": ["169.254.169.254"]}
    for target in (b"169.254.169.254", b"sneaky.example.net", b"[::ffff:169.254.169.254]"):
        internet = ScriptedInternet(names, [hop % target])
        result = scripted(internet, "http://a.example.net/")
        assert (result.status, result.failure) == (302, Reason.BLOCKED_ADDRESS)
        assert internet.dialled == [("1.1.1.1", 80)]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (b"http://10.0.0.1/", Reason.BLOCKED_ADDRESS),
        (b"http://localhost/", Reason.BLOCKED_ADDRESS),
        (b"http://b.example.net:22/", Reason.BLOCKED_PORT),
    ],
)
def test_a_redirect_that_its_url_condemns_is_not_even_a_visit(target: bytes, reason: Reason) -> None:
    internet = ScriptedInternet(
        {"a.example.net": ["1.1.1.1"]}, [b"HTTP/1.1 302 Found\r\nLocation: %s\r\n\r\n" % target]
    )
    gate = Gate()
    assert scripted(internet, "http://a.example.net/", gate).failure is reason
    assert gate.entered == internet.looked_up == ["a.example.net"]


def test_a_refused_url_never_reaches_gate_or_resolver() -> None:
    internet, gate = ScriptedInternet({}), Gate()
    for url in ("http://127.0.0.1/", "http://localhost/", "http://a.example.net:22/", "ftp://a.example.net/", "x"):
        result = scripted(internet, url, gate)
        assert result.failure is not None
        assert result.status is None
        assert result.final_url == url
    assert not gate.entered
    assert not internet.looked_up
    assert not internet.dialled


def test_a_connection_that_ends_elsewhere_is_dropped_before_a_word_is_said() -> None:
    internet = ScriptedInternet({"a.example.net": ["1.1.1.1"]}, reached=("10.0.0.1", 80))
    assert scripted(internet, "http://a.example.net/").failure is Reason.BLOCKED_ADDRESS
    assert internet.requests == []


@pytest.mark.parametrize(
    ("answers", "dialled"),
    [
        ([f"1.1.1.{i}" for i in range(9)], ["1.1.1.0", "1.1.1.1", "1.1.1.2"]),
        ([f"2606:4700::{i}" for i in range(1, 9)] + ["1.1.1.1"], ["2606:4700::1", "1.1.1.1", "2606:4700::2"]),
        (["1.1.1.1", "1.1.1.2", "2606:4700::1"], ["1.1.1.1", "2606:4700::1", "1.1.1.2"]),
    ],
)
def test_at_most_three_addresses_are_tried_and_ipv6_and_ipv4_in_turns(answers: list[str], dialled: list[str]) -> None:
    internet = ScriptedInternet({"a.example.net": answers})
    tried: list[str] = []

    async def refuse(ip: str, port: int) -> Any:
        tried.append(ip)
        raise ConnectionRefusedError

    internet.dial = refuse  # type: ignore[method-assign]
    assert scripted(internet, "http://a.example.net/").failure is Reason.CONNECTION_REFUSED
    assert tried == dialled


def test_the_next_address_is_tried_when_one_refuses(world: World) -> None:
    down, up = world.map.hosts["down.example.com"][0], world.map.hosts["guide.example.com"][0]

    async def both(host: str, port: int) -> list[tuple[str, int]]:
        return [down, up]

    assert fetch(world, "http://guide.example.com/", resolver=both).status == 200


def test_a_rebinding_name_never_reaches_the_private_host(world: World) -> None:
    public, private = world.map.hosts["guide.example.com"][0], world.map.hosts["private.example.com"][0]
    look_ups = 0

    async def flip_flop(host: str, port: int) -> list[tuple[str, int]]:
        nonlocal look_ups
        look_ups += 1
        return [public] if look_ups % 2 else [private]

    async def many() -> list[FetchResult]:
        fetcher = fetcher_of(world, policy=FixturePolicy([public]), resolver=flip_flop)
        return [await fetcher.fetch("http://rebind.example.com/", Gate()) for _ in range(40)]

    results = asyncio.run(many())
    assert [result.failure for result in results] == [None, Reason.BLOCKED_ADDRESS] * 20
    assert look_ups == 40
    assert targets(world, "private.example.com") == []


def test_a_redirect_to_a_host_outside_the_policy_makes_no_connection(world: World) -> None:
    hostile = world.map.hosts[HOSTILE][0]
    gate = Gate()
    result = fetch(world, f"http://{HOSTILE}/to-private", gate, policy=FixturePolicy([hostile]))
    assert (result.status, result.failure) == (302, Reason.BLOCKED_ADDRESS)
    assert result.final_url == "http://private.example.com/"
    assert gate.entered == [HOSTILE, "private.example.com"]
    assert targets(world, "private.example.com") == []


def test_a_public_policy_never_reaches_loopback(world: World) -> None:
    result = fetch(world, "http://guide.example.com/", policy=PublicPolicy())
    assert result.failure is Reason.BLOCKED_ADDRESS


def test_proxies_of_the_environment_are_ignored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ip, port = world.map.hosts["proxy.example.com"][0]
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://{ip}:{port}")
    assert fetch(world, "http://guide.example.com/").status == 200
    assert fetch(world, "https://guide.example.com/").status == 200
    assert targets(world, "proxy.example.com") == []


def test_a_fixture_home_looks_no_name_up(world: World) -> None:
    result = fetch(world, "http://guide.example.com/", resolver=None)
    assert result.failure is Reason.BLOCKED_ADDRESS
    ip, port = world.map.hosts["guide.example.com"][0]
    assert fetch(world, f"http://{ip}:{port}/", resolver=None).status == 200


# --- the gate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "answered", "asked_to_pause", "seconds"),
    [
        ("ok", True, False, None),
        ("s429_seconds", True, True, 120),
        ("s429_absurd", True, True, 900),
        ("s429_none", True, True, None),
        ("s503_retry", True, True, 7),
        ("s503_ratelimit", True, True, None),
        ("s403_spent", True, True, None),
        ("s403", True, False, None),
        ("s500", True, False, None),
        ("rst_at_once", False, False, None),
    ],
)
def test_the_gate_hears_how_the_visit_ended(
    world: World, name: str, answered: bool, asked_to_pause: bool, seconds: int | None
) -> None:
    gate = Gate()
    result = fetch(world, f"http://{HOSTILE}/{name}", gate)
    left = gate.left[-1]
    assert (left.answered, left.asked_to_pause) == (answered, asked_to_pause)
    assert left.retry_after == (timedelta(seconds=seconds) if seconds is not None else None)
    assert result.started_at <= left.at == result.ended_at


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        (b"Retry-After: 30", 30),
        (b"retry-after:30", 30),
        (b"Retry-After: 1m30s", 90),
        (b"Retry-After: 30\r\nRetry-After: 60", 60),
        (b"Retry-After: 60, 30", 60),
        (b"Retry-After: Mon, 28 Sep 2026 09:02:00 GMT", 120),
        (b"Retry-After: Mon, 28 Sep 2026 09:02:00 GMT\r\nRetry-After: 200", 200),
        (b"Retry-After: Mon, 28 Sep 2026 19:02:00 GMT", 900),
        (b"Retry-After: soon", None),
        (b"Retry-After:", None),
        (b"Retry-After: \xff\xfe", None),
        (b"Retry-After: " + b"9" * 5000, 900),
    ],
)
def test_every_form_of_retry_after_reaches_the_hosts_record(fields: bytes, seconds: int | None) -> None:
    internet = ScriptedInternet({"a.example.net": ["1.1.1.1"]}, [b"HTTP/1.1 429 x\r\n" + fields + b"\r\n\r\n"])
    gate = Gate()
    clock = VirtualClock(datetime(2026, 9, 28, 9, 0, tzinfo=UTC))
    scripted(internet, "http://a.example.net/", gate=gate, clock=clock)
    (left,) = gate.left
    assert left.asked_to_pause
    assert left.retry_after == (timedelta(seconds=seconds) if seconds is not None else None)


def test_a_deferred_hop_is_raised_on_after_the_first_host_was_left(world: World) -> None:
    gate = Gate(refuse_at=1, error=HopDeferred("guide.example.com", datetime(2026, 9, 28, tzinfo=UTC)))
    with pytest.raises(HopDeferred):
        fetch(world, f"http://{HOSTILE}/elsewhere", gate)
    assert len(gate.left) == 1


def test_a_refused_hop_is_the_results_failure(world: World) -> None:
    gate = Gate(refuse_at=1, error=HopRefused(Reason.REDIRECT_HOST_BUSY))
    result = fetch(world, f"http://{HOSTILE}/elsewhere", gate)
    assert (result.status, result.failure) == (302, Reason.REDIRECT_HOST_BUSY)
    assert result.redirects == (RedirectHop(url=f"http://{HOSTILE}/elsewhere", status=302),)
    assert result.final_url == "http://guide.example.com/"


def test_a_reset_before_any_byte_is_tried_once_more_as_a_visit_of_its_own(world: World) -> None:
    gate = Gate()
    assert fetch(world, f"http://{HOSTILE}/rst_at_once?twice", gate).failure is Reason.CONNECTION_RESET
    assert gate.entered == [HOSTILE, HOSTILE]
    assert targets(world, HOSTILE).count("/rst_at_once?twice") == 2
    gate = Gate()
    assert fetch(world, f"http://{HOSTILE}/rst_in_headers", gate).failure is Reason.CONNECTION_RESET
    assert gate.entered == [HOSTILE]


def test_the_second_try_is_given_up_when_the_gate_is_busy(world: World) -> None:
    gate = Gate(refuse_at=1, error=HopDeferred(HOSTILE, datetime(2026, 9, 28, tzinfo=UTC)))
    assert fetch(world, f"http://{HOSTILE}/rst_at_once", gate).failure is Reason.CONNECTION_RESET


def test_a_cancelled_fetch_leaves_the_gate_and_closes_its_connection(world: World) -> None:
    gate = Gate()

    async def cancelled() -> None:
        task = asyncio.create_task(fetcher_of(world).fetch(f"http://{HOSTILE}/silent", gate))
        while not gate.entered:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(cancelled())
    assert [departure.answered for departure in gate.left] == [False]


# --- our own faults ---------------------------------------------------------------------------------------------------


def test_an_unexpected_error_inside_is_a_result_and_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    quoted = "<p>secret</p>"

    async def broken(host: str, port: int) -> list[tuple[str, int]]:
        raise RuntimeError(f"a bug at {host}: {quoted}")

    gate = Gate()
    assert fetch(world, f"http://{HOSTILE}/ok?token=secret", gate, resolver=broken).failure is Reason.INTERNAL
    assert len(gate.left) == 1
    assert "fetch failed inside: RuntimeError" in caplog.text
    assert "in broken" in caplog.text
    assert "secret" not in caplog.text


def test_one_fetcher_serves_many_at_once(world: World) -> None:
    async def many() -> list[FetchResult]:
        fetcher = fetcher_of(world)
        return await asyncio.gather(*(fetcher.fetch("https://guide.example.com/", Gate()) for _ in range(30)))

    assert {result.status for result in asyncio.run(many())} == {200}


# --- names ------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def system_resolver(look_up: Any, threads: int = MOST_THREADS) -> AsyncIterator[SystemResolver]:
    resolver = SystemResolver(look_up=look_up, threads=threads)
    try:
        yield resolver
    finally:
        resolver.close()


def test_thirty_stuck_names_do_not_hold_a_good_one_up() -> None:
    stuck = threading.Event()

    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        if host != "good.example.net":
            stuck.wait()
        return [("1.1.1.1", port)]

    async def race() -> list[tuple[str, int]]:
        async with system_resolver(look_up) as resolver:
            slow = [asyncio.create_task(resolver(f"stuck-{i}.example.net", 80)) for i in range(30)]
            await asyncio.sleep(0)
            try:
                return await asyncio.wait_for(resolver("good.example.net", 80), PATIENT.total_seconds())
            finally:
                for task in slow:
                    task.cancel()
                stuck.set()

    assert asyncio.run(race()) == [("1.1.1.1", 80)]


def test_names_that_stay_stuck_for_longer_than_their_checks_wait_do_not_hold_a_good_one_up() -> None:
    """Three rounds of 20 checks gave up, and their look-ups go on."""
    stuck = threading.Event()

    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        if host != "good.example.net":
            stuck.wait()
        return [("1.1.1.1", port)]

    async def race() -> list[tuple[str, int]]:
        async with system_resolver(look_up) as resolver:
            for round_ in range(3):
                checks = [asyncio.ensure_future(resolver(f"stuck-{round_}-{i}.example.net", 80)) for i in range(20)]
                await asyncio.wait(checks, timeout=0.01)
                for check in checks:
                    check.cancel()
            try:
                return await asyncio.wait_for(resolver("good.example.net", 80), PATIENT.total_seconds())
            finally:
                stuck.set()

    assert asyncio.run(race()) == [("1.1.1.1", 80)]


def test_a_name_that_nobody_waits_for_any_more_is_not_looked_up() -> None:
    stuck, asked = threading.Event(), []

    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        asked.append(host)
        stuck.wait()
        return []

    async def ask() -> None:
        async with system_resolver(look_up, threads=1) as resolver:
            names = [asyncio.ensure_future(resolver(name, 80)) for name in ("first", "given-up", "last")]
            await asyncio.wait(names, timeout=0.01)
            names[1].cancel()
            await asyncio.sleep(0)
            stuck.set()
            await names[2]

    asyncio.run(ask())
    assert asked == ["first", "last"]


def test_a_thread_that_is_free_again_is_used_again() -> None:
    used = set[int]()

    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        used.add(threading.get_ident())
        return []

    async def ask() -> None:
        async with system_resolver(look_up) as resolver:
            for _ in range(20):
                await resolver("a.example.net", 80)
                while resolver._unfinished:  # its thread has answered, and is not free yet
                    await asyncio.sleep(0)

    asyncio.run(ask())
    assert len(used) == 1


def test_a_name_that_cannot_be_resolved_raises_what_the_system_said() -> None:
    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        raise OSError("no such name")

    async def ask() -> None:
        async with system_resolver(look_up) as resolver:
            await resolver("nowhere.example.net", 80)

    with pytest.raises(OSError, match="no such name"):
        asyncio.run(ask())


def test_a_look_up_that_never_ends_is_a_timeout_and_holds_nothing_up() -> None:
    stuck = threading.Event()

    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        stuck.wait()
        return []

    async def ask() -> FetchResult:
        async with system_resolver(look_up) as resolver:
            fetcher = GuardedFetcher(
                PublicPolicy(),
                clock=SystemClock(),
                user_agent=AGENT,
                resolver=resolver,
                deadline=timedelta(seconds=0.1),
            )
            return await fetcher.fetch("http://a.example.net/", Gate())

    try:
        assert asyncio.run(ask()).failure is Reason.TIMEOUT
    finally:
        stuck.set()
