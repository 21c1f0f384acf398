from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.guarded import GuardedFetcher
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy
from linkwatch_pipeline.adapters.fixture_site import DEFAULT_PORT, FixtureSite, FixtureState
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.reasons import Reason


@pytest.fixture
def site() -> Iterator[FixtureSite]:
    with FixtureSite(port=0).running() as running:
        yield running


def ask(site: FixtureSite, path: str = "/guide", method: str = "GET") -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(site.host, site.port, timeout=60)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read().decode()
    finally:
        connection.close()


class OpenGate:
    async def enter(self, host: str) -> None:
        return

    async def leave(self, departure: Departure) -> None:
        return


class HeldSite(FixtureSite):
    """Answers only when it closes, however long it should have waited."""

    def __init__(self) -> None:
        super().__init__(port=0)
        self.arrived = threading.Event()

    def wait(self, seconds: float) -> None:
        self.arrived.set()
        super().wait(3600)


def fetch(site: FixtureSite, path: str = "guide", deadline: timedelta = timedelta(seconds=60)) -> FetchResult:
    policy = FixturePolicy([(site.host, site.port)])
    fetcher = GuardedFetcher(policy, clock=SystemClock(), user_agent="test", deadline=deadline)
    return asyncio.run(fetcher.fetch(site.url + path, OpenGate()))


def test_the_defaults_are_those_of_the_reference_program(site: FixtureSite) -> None:
    assert DEFAULT_PORT == 8765
    status, headers, body = ask(site)
    assert (status, headers["content-type"], body) == (200, "text/plain", "guide-v1: learning resource")
    assert "retry-after" not in headers


@pytest.mark.parametrize("path", ["/", "/guide", "/any/where?at=all"])
def test_every_path_gives_the_same_page(site: FixtureSite, path: str) -> None:
    assert ask(site, path)[0] == 200


def test_head_has_the_headers_alone(site: FixtureSite) -> None:
    status, headers, body = ask(site, method="HEAD")
    assert (status, headers["content-length"], body) == (200, "27", "")


def test_the_state_can_be_set_and_the_rest_keeps_its_defaults(site: FixtureSite) -> None:
    site.set(status=404)
    assert ask(site)[0] == 404
    site.set(body="Domain for sale")
    assert ask(site)[::2] == (200, "Domain for sale")


@pytest.mark.parametrize(("status", "told"), [(429, "30"), (503, "30"), (200, None), (404, None), (500, None)])
def test_retry_after_goes_with_429_and_503(site: FixtureSite, status: int, told: str | None) -> None:
    site.set(status=status)
    assert ask(site)[1].get("retry-after") == told


def test_the_state_file_is_read_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with FixtureSite(port=0, state_file=file).running() as site:
        assert ask(site)[0] == 200
        file.write_text('{"status": 410, "retry_after": "soon", "body": "gone"}')
        assert ask(site)[::2] == (410, "gone")
        site.set(status=429, retry_after=5)
        assert json.loads(file.read_text()) == {"status": 429, "retry_after": 5}
        assert ask(site)[1]["retry-after"] == "5"
        assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting property name"),
        ("[]", "not a JSON object"),
        ("[" * 20_000, "nested too deeply"),
        ('{"body": "\\ud83d"}', "half a character"),
        ('{"staus": 404, "status": 200}', "it has no 'staus'; there are status, body,"),
        ('{"status": "200"}', "status must be a whole number from 200 to 599"),
        ('{"status": true}', "status must be"),
        ('{"status": 99}', "status must be"),
        ('{"body": 7}', "body must be text"),
        ('{"content_type": "text/plain\\r\\nX-Evil: 1"}', "content_type must be printable"),
        ('{"retry_after": [1]}', "retry_after must be printable"),
        ('{"delay_seconds": "3"}', "delay_seconds must be a number"),
        ('{"delay_seconds": NaN}', "delay_seconds must be a number"),
        ("\ufffd\ufffd", "Expecting value"),
    ],
)
def test_a_bad_state_file_is_a_500_that_says_why(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(text, encoding="utf-8")
    with FixtureSite(port=0, state_file=file).running() as site:
        status, _, body = ask(site)
        assert status == 500
        assert body.startswith("The fixture's state file cannot be used: ")
        assert problem in body
        file.write_text("{}")
        assert ask(site)[0] == 200


@pytest.mark.parametrize(("given", "seconds"), [(-1, 0), (0, 0), (0.5, 0.5), (5, 5), (99, 5), (10**30, 5)])
def test_a_delay_is_clamped_to_five_seconds(given: float, seconds: float) -> None:
    assert FixtureState(delay_seconds=given).delay == seconds


def test_a_delay_of_three_seconds_is_a_timeout_under_the_fixture_policy() -> None:
    with HeldSite().running() as site:
        result = fetch(site, deadline=FixturePolicy.deadline)
    assert (result.status, result.failure) == (None, Reason.TIMEOUT)
    assert FixturePolicy.deadline < timedelta(seconds=FixtureState(delay_seconds=3).delay)


def test_closing_ends_a_delay_early() -> None:
    held, answers = HeldSite(), list[int]()
    with held.running() as site:
        visitor = threading.Thread(target=lambda: answers.append(ask(site)[0]))
        visitor.start()
        held.arrived.wait()
    visitor.join()
    assert answers == [200]


def test_the_safe_fetcher_sees_what_the_site_says(site: FixtureSite) -> None:
    result = fetch(site)
    assert (result.status, result.body, result.content_type) == (200, b"guide-v1: learning resource", "text/plain")
    site.set(status=429, retry_after=120)
    result = fetch(site)
    assert (result.status, result.retry_after) == (429, "120")


def test_a_taken_port_is_an_error_that_names_the_mend(site: FixtureSite) -> None:
    with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{site.port} is taken .* another port with --port"):
        FixtureSite(port=site.port)


def test_the_port_is_free_again_afterwards() -> None:
    with FixtureSite(port=0).running() as site:
        port = site.port
    with FixtureSite(port=port).running() as again:
        assert ask(again)[0] == 200


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 8765), ("127.0.0.1", 70000)])
def test_an_address_that_cannot_be_had_is_a_configuration_error(host: str, port: int) -> None:
    with pytest.raises(ConfigurationError, match="cannot listen"):
        FixtureSite(host, port)
