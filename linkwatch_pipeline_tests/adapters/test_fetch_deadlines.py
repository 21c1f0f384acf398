"""How long the fetcher waits, to the millisecond: hostile servers and fetcher on one loop whose time is virtual.

The servers are those of `world.hostile`, byte for byte, behind socket pairs: what one end writes the other one can read
at once, so time passes only when both wait. Real sockets with real deadlines are in `test_fetch_endurance`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from datetime import timedelta

import pytest

from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher
from linkwatch_pipeline.adapters.fetch.policy import PublicPolicy
from linkwatch_pipeline.domain.fetching import MAX_BODY_BYTES, FetchResult
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.outcomes import Outcome, classify
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual
from linkwatch_pipeline_tests.world.hostile import BEHAVIOURS
from linkwatch_pipeline_tests.world.scripts import Answer, Request

HOST = "hostile.example.com"
DEADLINE = timedelta(seconds=5)


class SlowInternet:
    """Every name leads to one server, which behaves as the path says; `/elsewhere` leads on to another host's `/ok`."""

    def __init__(self) -> None:
        self._visits = Counter[str]()
        self._conversations = set[asyncio.Task[None]]()

    async def resolver(self, host: str, port: int) -> list[tuple[str, int]]:
        return [("93.184.216.34", port)]

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        served = asyncio.create_task(self._serve(*await asyncio.open_connection(sock=theirs)))
        self._conversations.add(served)
        served.add_done_callback(self._conversations.discard)
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.get_extra_info = lambda name, default=None: (ip, port) if name == "peername" else default  # type: ignore[method-assign]
        return reader, writer

    async def close(self) -> None:
        """Wait until every server has noticed that the fetcher is gone."""
        for conversation in list(self._conversations):
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            path = target.partition("?")[0]
            request = Request(HOST, target, {}, week=0, visit=self._visits[path])
            self._visits[path] += 1
            if path == "/elsewhere":
                writer.write(Answer.redirect("http://guide.example.com/ok").to_bytes())
            else:
                await BEHAVIOURS[path.removeprefix("/")](request, reader, writer)
        except OSError:
            pass  # the fetcher has gone
        finally:
            writer.close()


class Gate:
    """Lets everybody in, after a while."""

    def __init__(self, clock: VirtualClock, wait: timedelta = timedelta(0)) -> None:
        self._clock, self._wait = clock, wait
        self.inside = 0

    async def enter(self, host: str) -> None:
        await self._clock.sleep(self._wait)
        self.inside += 1

    async def leave(self, departure: Departure) -> None:
        self.inside -= 1


def fetch(
    path: str, *, deadline: timedelta = DEADLINE, wait_at_gate: timedelta = timedelta(0)
) -> tuple[FetchResult, timedelta]:
    """The answer, and how long it took in all."""
    clock, internet = VirtualClock(), SlowInternet()
    gate = Gate(clock, wait_at_gate)
    fetcher = GuardedFetcher(
        PublicPolicy(),
        clock=clock,
        user_agent="linkwatch-test/1",
        resolver=internet.resolver,
        ssl_context=ssl.create_default_context(),
        deadline=deadline,
        dial=internet.dial,
    )

    async def look() -> FetchResult:
        result = await fetcher.fetch(f"http://{HOST}/{path}", gate)
        await internet.close()
        return result

    began = clock.now()
    result = run_virtual(look(), clock)
    assert gate.inside == 0
    return result, result.ended_at - began


def verdict(result: FetchResult) -> tuple[Outcome, Reason | None, int | None]:
    judged = classify(
        result.status, content_complete=result.content_complete, failure=result.failure, challenged=result.challenged
    )
    return judged.outcome, judged.reason, result.status


# What runs into the deadline; the status is what came before. The others are in test_guarded_fetcher.
ENDLESS = {
    "chunked_no_end": 200,
    "cl_huge": 200,
    "silent": None,
    "slow_1xx": None,
    "trickle_body": 200,
    "trickle_headers": None,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_server_without_end_is_left_at_the_deadline(name: str) -> None:
    result, _ = fetch(name)
    assert verdict(result) == (Outcome.UNCERTAIN, Reason.TIMEOUT, ENDLESS[name])
    assert result.network_ms == 5000


def test_the_deadline_is_one_for_all_hops() -> None:
    result, _ = fetch("slow_redirect", deadline=timedelta(seconds=0.7))  # each hop takes 0.2
    assert verdict(result) == (Outcome.UNCERTAIN, Reason.TIMEOUT, 302)
    assert (len(result.redirects), result.network_ms) == (3, 700)


def test_a_page_of_exactly_64_kib_without_an_end_is_waited_for_one_second_only() -> None:
    result, _ = fetch("body_64k_held")
    assert (result.status, result.failure, len(result.body)) == (200, None, MAX_BODY_BYTES)
    assert not result.content_complete
    assert result.network_ms == 1000


def test_a_404_whose_body_trickles_is_waited_for_two_seconds_only() -> None:
    result, _ = fetch("s404_trickle")
    assert verdict(result) == (Outcome.BROKEN, Reason.GONE, 404)
    assert (result.failure, result.content_complete) == (None, False)
    assert result.network_ms == 2000


def test_waiting_at_the_gate_is_no_network_time() -> None:
    result, took = fetch("elsewhere", wait_at_gate=timedelta(hours=1))
    assert (result.status, result.failure, result.network_ms) == (200, None, 0)
    assert took == timedelta(hours=2)
