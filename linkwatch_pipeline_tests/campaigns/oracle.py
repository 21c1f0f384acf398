"""What must have happened to every link after each week, worked out from the script alone: SPEC 4, 5, 8 in few lines.

Nothing here comes from the product: a rule that it forgot, or made up, shows as a difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from linkwatch_pipeline_tests.campaigns.fates import WEEKS, Look, Script, host_of

_THROTTLED_IN_A_ROW = 3
_RETRY_RUNS = 3


@dataclass(frozen=True)
class Expected:
    """A link's state and version, and the sequence of its last observation."""

    state: str = "unknown"
    version: int = 0
    last_sequence: int = -1


@dataclass(frozen=True)
class Seen:
    """One observation that must exist."""

    run_id: str
    link_id: str
    sequence: int
    outcome: str
    status: int | None


@dataclass(frozen=True)
class Told:
    """One transition, and its notice."""

    transition_id: str
    link_id: str
    from_state: str
    to_state: str
    run_id: str
    sequence: int
    status: int | None


@dataclass
class Week:
    """What a week adds; `ends` counts the jobs of each of its runs by how they ended."""

    seen: list[Seen] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    ends: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    asked: Counter[str] = field(default_factory=Counter)


class Oracle:
    """Plays the script week by week. `links` is URL to link id."""

    def __init__(self, script: Script, links: Mapping[str, str]) -> None:
        self._script = script
        self._url_of = {link_id: url for url, link_id in links.items()}
        self.links = {link_id: Expected() for link_id in self._url_of}
        self._sequences = Counter[str]()

    def play(self, number: int) -> Week:
        """The next week."""
        week = Week()
        run_id = f"{WEEKS[number]}T09:00:00Z"
        members: Sequence[str] = sorted(self._url_of)
        for retry in range(_RETRY_RUNS + 1):
            members = self._run(week, number, f"{run_id}~retry-{retry}" if retry else run_id, members)
            if not members:
                break
        return week

    def _run(self, week: Week, number: int, run_id: str, members: Sequence[str]) -> list[str]:
        """One run over its members; who has to be looked at again."""
        again = []
        in_a_row: Counter[str] = Counter()
        for link_id in sorted(members):
            url = self._url_of[link_id]
            sequence = self._sequences[link_id]
            self._sequences[link_id] += 1
            if in_a_row[host_of(url)] >= _THROTTLED_IN_A_ROW:
                week.ends[run_id]["expired"] += 1
                again.append(link_id)
                continue
            looks = self._script.looks(url, number)
            look = looks[min(week.asked[url], len(looks) - 1)]
            week.asked[url] += 1
            week.ends[run_id][look.outcome] += 1
            week.seen.append(Seen(run_id, link_id, sequence, look.outcome, look.status))
            self._apply(week, run_id, link_id, sequence, look)
            in_a_row[host_of(url)] = in_a_row[host_of(url)] + 1 if look.outcome == "throttled" else 0
            if look.outcome == "throttled":
                again.append(link_id)
        return again

    def _apply(self, week: Week, run_id: str, link_id: str, sequence: int, look: Look) -> None:
        before = self.links[link_id]
        state = look.outcome if look.outcome in ("reachable", "broken") else before.state
        version = before.version + (state != before.state)
        self.links[link_id] = Expected(state, version, sequence)
        if state == before.state or (before.state, state) == ("unknown", "reachable"):
            return
        week.told.append(Told(f"{link_id}:{version}", link_id, before.state, state, run_id, sequence, look.status))
