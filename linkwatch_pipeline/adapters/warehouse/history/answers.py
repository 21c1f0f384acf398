"""The kinds of answers that made-up pages give, each judged by the one `classify`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from linkwatch_pipeline.domain.outcomes import Verdict, classify
from linkwatch_pipeline.domain.reasons import Reason


class Answer(IntEnum):
    """What came back. The numbers stand in arrays."""

    FOUND = 0
    FOUND_WITH_TEXT = 1
    TEXT_MISSING = 2
    GONE = 3
    GONE_FOR_GOOD = 4
    TOO_MANY = 5
    TIMEOUT = 6
    DNS = 7
    TLS_EXPIRED = 8
    SERVER_ERROR = 9
    FORBIDDEN = 10
    CHALLENGE = 11


class Redirect(IntEnum):
    """Where the answer was found. The numbers stand in arrays."""

    NONE = 0
    MOVED_FOR_GOOD = 1
    MOVED_FOR_NOW = 2
    FRONT_PAGE = 3
    PARKED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What one kind of answer looks like on the wire, and what it means."""

    status: int | None
    marker_found: bool | None = None
    failure: Reason | None = None
    challenged: bool = False

    @property
    def verdict(self) -> Verdict:
        return classify(self.status, marker_found=self.marker_found, failure=self.failure, challenged=self.challenged)


KINDS = {
    Answer.FOUND: Kind(status=200),
    Answer.FOUND_WITH_TEXT: Kind(status=200, marker_found=True),
    Answer.TEXT_MISSING: Kind(status=200, marker_found=False),
    Answer.GONE: Kind(status=404),
    Answer.GONE_FOR_GOOD: Kind(status=410),
    Answer.TOO_MANY: Kind(status=429),
    Answer.TIMEOUT: Kind(status=None, failure=Reason.TIMEOUT),
    Answer.DNS: Kind(status=None, failure=Reason.DNS),
    Answer.TLS_EXPIRED: Kind(status=None, failure=Reason.TLS_EXPIRED),
    Answer.SERVER_ERROR: Kind(status=503),
    Answer.FORBIDDEN: Kind(status=403),
    Answer.CHALLENGE: Kind(status=403, challenged=True),
}
