"""What happens to made-up pages from week to week: they die and come back, move, fall silent, ask for a pause.

Everything is drawn with numpy from one seed, whole weeks at a time. Rates are those of a handbook of mixed sites: some
3 % of links broken at any time, a few in a hundred uncertain, hosts that are down for a week or never let robots in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkwatch_pipeline.adapters.warehouse.history.answers import Answer, Redirect

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

RUN_MICROSECONDS = 25 * 60 * 1_000_000  # over which the looks of a weekly run are spread, unless a host needs longer
RETRY_MICROSECONDS = 5 * 60 * 1_000_000
_TIMEOUT_MS = 10_000
_REST = 1_000_000  # microseconds between two visits of a host
_RESOLVED = 0.85  # of what asked for a pause, in the next retry run
# By link and week, if not said otherwise.
_DIES, _RETURNS, _DEAD_AT_FIRST, _MOVES, _CONTENT_CHANGES, _HICCUP = 0.0015, 0.05, 0.03, 0.0008, 0.08, 0.004
_HOST_REBUILT, _HOST_DOWN, _HOST_PARKED = 0.0008, 0.005, 0.0001  # by host and week
_WALLED, _STRICT, _SOFT = 0.01, 0.005, 0.02  # hosts: let nobody in, ask for pauses, answer 200 for what is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The looks of one run, as arrays over its links: `link` has their numbers, ascending.

    `at` is microseconds after the run's start, `elapsed` microseconds, `latency` milliseconds, `certificate` the days
    that the host's certificate has left, `version` counts the changes of the page's content.
    """

    link: Numbers
    answer: Numbers
    redirect: Numbers
    at: Numbers
    elapsed: Numbers
    latency: Numbers
    size: Numbers
    version: Numbers
    certificate: Numbers


class Fates:
    """The pages of an inventory and how they fare."""

    def __init__(self, host_of: list[int], has_marker: list[bool], *, seed: int) -> None:
        self._draw = np.random.Generator(np.random.PCG64(seed))
        self._host = np.array(host_of, dtype=np.int64)
        self._marker = np.array(has_marker, dtype=np.bool_)
        links, hosts = len(host_of), max(host_of) + 1
        self._dead = self._chance(_DEAD_AT_FIRST, links)
        self._gone_for_good = self._chance(0.1, links)
        self._flaky = self._chance(0.02, links)
        self._for_now = self._chance(0.03, links)
        self._moved = self._chance(0.01, links)
        self._version = np.zeros(links, dtype=np.int64)
        self._size = np.minimum(65_536, self._draw.lognormal(10.2, 1.1, links)).astype(np.int64)
        self._walled, self._strict, self._soft = (self._chance(p, hosts) for p in (_WALLED, _STRICT, _SOFT))
        self._parked = np.zeros(hosts, dtype=np.bool_)
        self._pace = self._draw.lognormal(5.9, 0.7, hosts)  # milliseconds
        self._renewal = self._draw.integers(0, 70, hosts)  # days since the certificate was renewed, of 90
        self._renews_at = np.where(self._chance(0.03, hosts), 88, self._draw.integers(55, 68, hosts))

    def next_week(self) -> list[Round]:
        """The looks of the next week's run and of its retry runs."""
        self._pass_a_week()
        rounds = [self._look(np.arange(len(self._host)), RUN_MICROSECONDS)]
        while len(rounds) < 4 and (waiting := rounds[-1].link[rounds[-1].answer == Answer.TOO_MANY]).size:
            rounds.append(self._look(waiting, RETRY_MICROSECONDS, again=True))
        return rounds

    def _pass_a_week(self) -> None:
        links, hosts = len(self._host), len(self._walled)
        rebuilt = self._chance(_HOST_REBUILT, hosts)[self._host] & self._chance(0.4, links)
        returns = self._dead & self._chance(_RETURNS, links)
        self._dead = (self._dead & ~returns) | self._chance(_DIES, links) | rebuilt
        self._moved |= self._chance(_MOVES, links)
        self._version += self._chance(_CONTENT_CHANGES, links)
        self._parked |= self._chance(_HOST_PARKED, hosts)
        self._renewal = np.where(self._renewal + 7 > self._renews_at, 0, self._renewal + 7)
        down = self._chance(_HOST_DOWN, hosts)
        self._down = np.where(down, self._draw.choice([Answer.TIMEOUT, Answer.DNS, Answer.SERVER_ERROR], hosts), -1)

    def _look(self, link: Numbers, within: int, *, again: bool = False) -> Round:
        host = self._host[link]
        answer, redirect = self._page(link, host)
        answer = self._host_answer(answer, link, host, again=again)
        redirect[(answer > Answer.TEXT_MISSING)] = Redirect.NONE
        latency = np.minimum(9_900, self._pace[host] * self._draw.lognormal(0, 0.35, link.size)).astype(np.int64) + 1
        latency[answer == Answer.TIMEOUT] = _TIMEOUT_MS
        answered = answer < Answer.TIMEOUT
        elapsed = latency * 1_000 + self._draw.integers(0, 1_000, link.size)
        return Round(
            link=link,
            answer=answer,
            redirect=redirect,
            at=self._one_after_another(host, elapsed, within),
            elapsed=elapsed,
            latency=latency,
            size=np.where(answered, self._size[link], 0),
            version=self._version[link],
            certificate=90 - self._renewal[host],
        )

    def _one_after_another(self, host: Numbers, elapsed: Numbers, within: int) -> Numbers:
        """When each look ends: one at a time on a host, with the rest that is due to it."""
        order = np.argsort(host, kind="stable")
        spans = (elapsed + _REST + self._draw.integers(0, _REST // 5, host.size))[order]
        begins = np.cumsum(spans) - spans
        hosts, first, count = np.unique(host[order], return_index=True, return_counts=True)
        whole = np.add.reduceat(spans, first)
        enters = (self._draw.random(hosts.size) * np.maximum(0, within - whole)).astype(np.int64)
        at = np.empty_like(spans)
        at[order] = begins + np.repeat(enters - begins[first], count) + elapsed[order]
        return at

    def _page(self, link: Numbers, host: Numbers) -> tuple[Numbers, Numbers]:
        """What the page alone would answer, and where."""
        answer = np.where(self._marker[link], Answer.FOUND_WITH_TEXT, Answer.FOUND).astype(np.int64)
        answer[self._marker[link] & self._chance(0.01, link.size)] = Answer.TEXT_MISSING
        redirect = np.where(self._for_now[link], Redirect.MOVED_FOR_NOW, Redirect.NONE).astype(np.int64)
        redirect[self._moved[link]] = Redirect.MOVED_FOR_GOOD
        gone = self._dead[link] & ~self._soft[host]
        answer[gone] = np.where(self._gone_for_good[link[gone]], Answer.GONE_FOR_GOOD, Answer.GONE)
        for astray, where in (
            (self._dead[link] & self._soft[host], Redirect.FRONT_PAGE),
            (self._parked[host], Redirect.PARKED),
        ):
            answer[astray] = np.where(self._marker[link[astray]], Answer.TEXT_MISSING, Answer.FOUND)
            redirect[astray] = where
        return answer, redirect

    def _host_answer(self, answer: Numbers, link: Numbers, host: Numbers, *, again: bool) -> Numbers:
        """What the host and the way to it make of the page's answer."""
        hiccups = [Answer.TIMEOUT, Answer.TIMEOUT, Answer.SERVER_ERROR, Answer.TLS_EXPIRED]
        odd = self._chance(_HICCUP, link.size) | (self._flaky[link] & self._chance(0.3, link.size))
        answer = np.where(odd, self._draw.choice(hiccups, link.size), answer)
        answer = np.where(self._walled[host], np.where(host % 3 == 0, Answer.CHALLENGE, Answer.FORBIDDEN), answer)
        answer = np.where(self._down[host] >= 0, self._down[host], answer)
        pause = (
            (self._strict[host] & self._chance(0.3, link.size)) if not again else self._chance(1 - _RESOLVED, link.size)
        )
        return np.where(pause, Answer.TOO_MANY, answer)

    def _chance(self, probability: float, size: int) -> Flags:
        drawn: Any = self._draw.random(size) < probability
        return np.asarray(drawn, dtype=np.bool_)
