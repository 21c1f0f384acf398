"""More than one visit at once on a host, where its owner agreed to that (ARCHITECTURE 2).

Such a host has *slots*. Each is a host of its own to chains, leases and rests: the protocol of one visitor at a time is
the same in each. The first slot bears the host's name, the others `docs.example.com#2`, `#3`, ...
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

MAX_VISITS = 10
MAX_AGREED_WITH = 200
# Sorts before every character of a host name, so a host's slots stand together in every listing.
_MARK = "#"

# Visits at once, by host. A host that is not there has one.
Allowances = Mapping[str, int]
NO_ALLOWANCES: Allowances = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a host's owner agreed to, and who that was and when: shown to whoever looks at the run."""

    visits: int
    agreed_with: str


def slots_of(host: str, visits: int) -> tuple[str, ...]:
    """The names of a host's slots."""
    return (host, *(f"{host}{_MARK}{number}" for number in range(2, visits + 1)))


def host_of(slot: str) -> str:
    """The host whose slot it is."""
    return slot.partition(_MARK)[0]


def slot_for(link_id: str, host: str, visits: int) -> str:
    """The slot of a link: the same for every dispatcher, whatever other links it sees."""
    return slots_of(host, visits)[zlib.crc32(link_id.encode()) % visits] if visits > 1 else host


def leased_slot(slot: str, allowances: Allowances) -> str:
    """The slot to take before a visit. Where less is agreed now than when a chain was made, chains share slots."""
    host, _, number = slot.partition(_MARK)
    visits = allowances.get(host, 1)
    return slots_of(host, visits)[(int(number or 1) - 1) % visits]
