"""What a world's servers saw: the proof of politeness, from the other side."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Hit:
    """One connection that ended. `target` is None if no request came over it.

    `started` (accepted; over TLS, greeted) and `ended` (the last of the answer written, or the other side gone) are
    monotonic seconds of the machine, `at` is the wall clock at the start (ISO, UTC). `together` counts the open
    connections to this host then, itself included; `together_all` those to all hosts.
    """

    host: str
    address: str
    scheme: str
    target: str | None
    headers: dict[str, str]
    week: int
    at: str
    started: float
    ended: float
    together: int
    together_all: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class RequestLog:
    """Hits in the order they ended."""

    def __init__(self, hits: Iterable[Hit] = ()) -> None:
        self.hits = list(hits)

    @classmethod
    def read(cls, lines: Iterable[str]) -> RequestLog:
        """From JSON lines; a last line that is still being written is left out."""
        return cls(Hit(**json.loads(line)) for line in lines if line.endswith("\n"))

    def of(self, host: str) -> list[Hit]:
        """A host's hits in the order they started."""
        return sorted((hit for hit in self.hits if hit.host == host), key=lambda hit: hit.started)

    def targets(self, host: str) -> list[str | None]:
        """What was asked of a host, in order."""
        return [hit.target for hit in self.of(host)]

    def hosts(self) -> list[str]:
        return sorted({hit.host for hit in self.hits})

    def overlaps(self, host: str) -> list[tuple[Hit, Hit]]:
        """Neighbouring hits of which the later began before the earlier ended."""
        return [(a, b) for a, b in pairwise(self.of(host)) if b.started < a.ended]

    def gaps(self, host: str) -> list[float]:
        """Seconds between the end of each hit and the start of the next."""
        return [b.started - a.ended for a, b in pairwise(self.of(host))]

    def most_together(self) -> int:
        """The most connections open at once, over all hosts."""
        return max((hit.together_all for hit in self.hits), default=0)
