"""One look at one link: the evidence that everything else is derived from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.timestamps import require_utc

# In the store; the warehouse keeps them for good.
KEEP_OBSERVATIONS = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectHop:
    """One redirect that was followed: the URL that answered and its status."""

    url: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The record of one logical check; unique by `job_id` and by (link, sequence).

    `run_id` is None for a hand check. `status` is None when there was no usable answer. `marker_found` is None when
    no marker was expected or the answer was not a 2xx. `content_hash` is the SHA-256 (hex) of the body bytes read,
    None without an answer. `latency_ms` counts network time over all hops.
    """

    job_id: str
    run_id: str | None
    link_id: str
    url: str
    sequence: int
    config_version: int
    rules_version: int
    retry_of: str | None = None
    started_at: datetime
    observed_at: datetime
    status: int | None
    outcome: Outcome
    reason: Reason | None = None
    content_hash: str | None = None
    content_complete: bool = True
    marker_found: bool | None = None
    bytes_read: int = 0
    latency_ms: int = 0
    content_type: str | None = None
    final_url: str | None = None
    redirects: tuple[RedirectHop, ...] = ()
    tls_not_after: datetime | None = None
    page_hints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_utc("started_at", self.started_at)
        require_utc("observed_at", self.observed_at)

    @property
    def content_digest(self) -> str:
        """SHA-256 of what makes two records of one job the same (SPEC 5): never times."""
        found = self.marker_found if self.status is not None and 200 <= self.status <= 299 else None
        content = [
            self.link_id,
            self.url,
            self.sequence,
            self.config_version,
            self.status,
            found,
            self.content_hash,
        ]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def body_hash(body: bytes) -> str:
    """SHA-256, in hex, of the bytes read."""
    return hashlib.sha256(body).hexdigest()
