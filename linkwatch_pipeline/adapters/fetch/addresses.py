"""Is this address one of the public Internet? (SPEC 9)

The standard library's `is_global` alone is not the answer: it is true for multicast, for IPv4 embedded in IPv6 and for
a cloud's metadata service in public space, and it changes with the interpreter. So a table of our own decides first,
and `is_global` may only refuse more. Sources: the IANA special-purpose address registries and the RFCs named below.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network

_REFUSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private (RFC 1918)
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata service lives at 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host services, in public space
        "169.254.0.0/16",  # link-local: the metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocols; a metadata service at 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# The only IPv6 space that is allocated for the public Internet. Outside lie loopback, mapped, translated and
# compatible IPv4, NAT64, unique local, link-local, site-local, multicast, SRv6 and everything unallocated.
_PUBLIC_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocols: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: any IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # the former 6bone
        "3fff::/20",  # documentation (RFC 9637)
    )
)
# ISATAP (RFC 5214) carries an IPv4 address in the last 32 bits behind this interface identifier; the universal/local
# bit may be set or not.
_ISATAP_MARKS = (0x0000_5EFE, 0x0200_5EFE)


def is_public(address: str) -> bool:
    """Whether a literal IPv4 or IPv6 address may be dialled; False for anything that is not a plain address."""
    try:
        return _is_public_v6(IPv6Address(address)) if ":" in address else _is_public_v4(IPv4Address(address))
    except AddressValueError:
        return False


def _is_public_v4(address: IPv4Address) -> bool:
    return address.is_global and not any(address in network for network in _REFUSED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if address.scope_id is not None or address not in _PUBLIC_V6:
        return False
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP_MARKS:
        return False
    return address.is_global and not any(address in network for network in _REFUSED_V6)
