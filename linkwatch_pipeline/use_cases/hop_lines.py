"""Who waits for a redirect's host in this process: one line per host, first come first served.

Hundreds of links may lead to one sign-in page. If each of their visitors asked for that host again and again, they
would fill all slots, and the unlucky among them would run out of patience. In line only the first one asks; whoever
would wait too long leaves at once, keeps the place, and comes back for the turn. It decides nothing: the store does.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

# Someone who is so late for the turn has lost the place: the job may have ended otherwise.
_PLACE_KEPT_FOR = timedelta(seconds=60)


@dataclass(slots=True)
class HopLine:
    """The line of one host.

    `_places` are job ids in the order of their coming, None for who is here, else when to expect them back. `_pace` is
    the mean time from one visit to the next, None before the first; `opens_at` when the host may be visited next, as
    far as is known here; `changed` is set when somebody else may be the first one now.
    """

    opens_at: datetime | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _places: dict[str, datetime | None] = field(default_factory=dict)
    _visits: int = 0
    _pace: timedelta = timedelta(0)

    def join(self, job_id: str) -> None:
        """Be here, at the end or at the place that was kept."""
        self._places[job_id] = None

    def send_away(self, job_id: str, until: datetime) -> None:
        """Keep the place of somebody who comes back."""
        self._places[job_id] = until
        self._change()

    def forget(self, job_id: str) -> None:
        """Be out of the line: the turn has come, or the job is over."""
        if job_id in self._places:
            del self._places[job_id]
            self._change()

    def is_first(self, job_id: str) -> bool:
        """Whether nobody else is here before this job."""
        return next((other for other, back_at in self._places.items() if back_at is None), job_id) == job_id

    def expected_wait(self, job_id: str, now: datetime) -> timedelta:
        """How long until this job's turn, those counted who are away; zero while no visit was seen."""
        for late in [job for job, back_at in self._places.items() if back_at and now > back_at + _PLACE_KEPT_FOR]:
            del self._places[late]
        opens_in = max(self.opens_at - now, timedelta(0)) if self.opens_at is not None else timedelta(0)
        ahead = list(self._places).index(job_id) if job_id in self._places else len(self._places)
        return opens_in + ahead * self._pace

    def visit_ended(self, took: timedelta, opens_at: datetime | None) -> None:
        """A visit to the host ended; `took` includes the cooldown after it, but no pause that the host asked for."""
        self._visits += 1
        self._pace += (took - self._pace) / self._visits
        self.opens_at = opens_at
        self._change()

    def _change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass(slots=True)
class HopLines:
    """The lines of all hosts that redirects led to."""

    _lines: dict[str, HopLine] = field(default_factory=dict)

    def of(self, host: str) -> HopLine:
        """The host's line, begun if there is none."""
        return self._lines.setdefault(host, HopLine())

    def visit_ended(self, host: str, took: timedelta, opens_at: datetime | None) -> None:
        """Tell the host's line, if it has one."""
        if host in self._lines:
            self._lines[host].visit_ended(took, opens_at)

    def forget(self, job_id: str) -> None:
        """The job is over: no line keeps a place for it."""
        for line in self._lines.values():
            line.forget(job_id)
