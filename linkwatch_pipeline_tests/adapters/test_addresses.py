from __future__ import annotations

import ipaddress
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.fetch import addresses
from linkwatch_pipeline.adapters.fetch.addresses import is_public

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:2800:220:1:248:1893:25c8:1946",
    "2a00:1450:4001:81b::200e",
]
REFUSED = {
    "this network": ["0.0.0.0", "0.1.2.3"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"],
    "carrier-grade NAT": ["100.64.0.1", "100.127.255.255", "100.100.100.200"],
    "loopback": ["127.0.0.1", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1"],
    "link-local and metadata": ["169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254"],
    "metadata in public space": ["168.63.129.16", "192.0.0.192"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.9", "2001:db8::1", "3fff::1"],
    "benchmarks": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "special services": ["192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1", "2620:4f:8000::1"],
    "multicast": ["224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "4000::1", "e000::1", "5f00::1", "100::1", "::"],
    "unique and site-local": ["fc00::1", "fdff::1", "fec0::1"],
    "IPv4 inside IPv6": [
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "2001:4860::5efe:7f00:1",
        "2001:4860::200:5efe:7f00:1",
    ],
    "ORCHID": ["2001:10::1", "2001:20::1", "2001:30::1", "2001:1::1"],
    "scoped": ["fe80::1%eth0", "2606:2800::1%eth0"],
    "no address": ["", "localhost", "not-an-ip", "127.1", "0x7f.1", "010.0.0.1", "1.1.1.1/32", "[::1]", " 1.1.1.1"],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_dialled(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(("why", "address"), [(why, address) for why, some in REFUSED.items() for address in some])
def test_every_other_address_is_refused(why: str, address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_what_the_standard_library_calls_private_is_never_public(address: ipaddress.IPv4Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert not is_public(str(address))


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_becomes_public_by_being_written_as_ipv6(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for prefix in ("::ffff:0:0", "64:ff9b::", "::", "64:ff9b:1::"):
        assert not is_public(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) + number)))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)))


@given(st.text(max_size=40))
def test_any_text_gets_a_verdict(text: str) -> None:
    assert is_public(text) in (True, False)


def test_the_egress_rule_of_deploy_denies_every_range_that_we_refuse() -> None:
    """But loopback, which the rule has to leave open."""
    conf = (Path(__file__).parents[2] / "deploy" / "systemd" / "egress.conf").read_text(encoding="utf-8")
    denied = [
        ip_network(n) for line in conf.splitlines() if line.startswith("IPAddressDeny=") for n in line[14:].split()
    ]
    outside = [ip_network("::/3"), ip_network("4000::/2"), ip_network("8000::/1")]
    for network in (*addresses._REFUSED_V4, *addresses._REFUSED_V6, *outside):
        if not network.is_loopback:
            same = [other for other in denied if other.version == network.version]
            assert any(network.subnet_of(other) for other in same), network  # type: ignore[arg-type]
