"""The fetcher: bounded, safe GETs, every hop of them a polite visit."""

from __future__ import annotations

from typing import Protocol

from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.hosts import Departure


class HopGate(Protocol):
    """Asked by the fetcher before each redirect hop and told after each answer, so that every hop is a polite visit."""

    async def enter(self, host: str) -> None:
        """Return when the host may be visited. Raises HopDeferred or HopRefused (domain.fetching)."""
        ...

    async def leave(self, departure: Departure) -> None:
        """The connection to the host entered last has ended."""
        ...


class Fetcher(Protocol):
    """Bounded, safe GETs."""

    async def fetch(self, url: str, gate: HopGate) -> FetchResult:
        """GET `url` and follow its redirects, within the bounds of `domain.fetching`.

        `gate.enter(host)` is awaited before the first connection and before every hop, `gate.leave(...)` after each
        connection ended, whatever happened. A gate's HopRefused becomes the result's failure; its HopDeferred is
        raised on. Everything else that goes wrong on the network is a result, never an exception.
        """
        ...

    async def aclose(self) -> None: ...
