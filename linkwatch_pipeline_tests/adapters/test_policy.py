from __future__ import annotations

import inspect
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, Policy, PublicPolicy
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import RefusedUrl, parse_url

FIXTURE = ("127.0.0.1", 8765)


def reason_of(policy: Policy, url: str) -> Reason | None:
    try:
        policy.judge_url(parse_url(url))
    except RefusedUrl as refused:
        return refused.reason
    return None


def admits(policy: Policy, ip: str, port: int) -> bool:
    try:
        policy.judge_address(ip, port)
    except RefusedUrl:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://docs.example.com/", None),
        ("https://docs.example.com/guide?x=1", None),
        ("http://docs.example.com:443/", None),
        ("https://93.184.216.34/", None),
        ("https://[2606:2800:220:1:248:1893:25c8:1946]/", None),
        ("http://docs.example.com:8080/", Reason.BLOCKED_PORT),
        ("http://docs.example.com:22/", Reason.BLOCKED_PORT),
        ("http://127.0.0.1:8765/", Reason.BLOCKED_PORT),
        ("http://127.0.0.1/", Reason.BLOCKED_ADDRESS),
        ("http://169.254.169.254/latest/meta-data/", Reason.BLOCKED_ADDRESS),
        ("http://[::1]/", Reason.BLOCKED_ADDRESS),
        ("http://localhost/", Reason.BLOCKED_ADDRESS),
        ("http://intranet/", Reason.BLOCKED_ADDRESS),
        ("http://printer.local/", Reason.BLOCKED_ADDRESS),
        ("http://metadata.google.internal/", Reason.BLOCKED_ADDRESS),
        ("http://router.home.arpa/", Reason.BLOCKED_ADDRESS),
        ("http://x.localhost./", Reason.BLOCKED_ADDRESS),
    ],
)
def test_the_public_policy_judges_a_url_before_any_look_up(url: str, reason: Reason | None) -> None:
    assert reason_of(PublicPolicy(), url) is reason


def test_the_public_policy_takes_no_parameters() -> None:
    assert not inspect.signature(PublicPolicy).parameters


def test_a_whole_look_may_take_ten_seconds_in_public_and_two_at_a_fixture() -> None:
    assert PublicPolicy().deadline == timedelta(seconds=10)
    assert FixturePolicy([FIXTURE]).deadline == timedelta(seconds=2)


def test_a_fixture_policy_admits_its_pairs_and_nothing_else() -> None:
    policy = FixturePolicy([FIXTURE])
    assert admits(policy, *FIXTURE)
    assert not admits(policy, "127.0.0.1", 8766)
    assert not admits(policy, "127.0.0.2", 8765)
    assert not admits(policy, "93.184.216.34", 80)
    assert reason_of(policy, "http://127.0.0.1:8765/any") is None
    assert reason_of(policy, "http://127.0.0.1:8766/") is Reason.BLOCKED_ADDRESS
    assert reason_of(policy, "http://93.184.216.34/") is Reason.BLOCKED_ADDRESS


@pytest.mark.parametrize(
    "pair",
    [
        ("93.184.216.34", 8765),
        ("10.0.0.1", 8765),
        ("0.0.0.0", 8765),
        ("127.0.0.1", 80),
        ("127.0.0.1", 1023),
        ("127.0.0.1", 65536),
        ("localhost", 8765),
    ],
)
def test_a_fixture_must_be_loopback_and_unprivileged(pair: tuple[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=r"such as 127\.0\.0\.1:8765"):
        FixturePolicy([FIXTURE, pair])


def test_a_fixture_policy_without_pairs_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        FixturePolicy([])


@given(st.ip_addresses().map(str), st.integers(1, 65535))
def test_no_address_is_admitted_by_both_policies(ip: str, port: int) -> None:
    assert not admits(PublicPolicy(), ip, port) or not admits(FixturePolicy([FIXTURE]), ip, port)
    try:
        fixture = FixturePolicy([(ip, port)])
    except ConfigurationError:
        return
    assert not admits(PublicPolicy(), ip, port)
    assert admits(fixture, ip, port)
