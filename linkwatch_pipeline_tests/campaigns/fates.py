"""What happens to every page of a handbook in four weeks: the script behind both the world and the oracle."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

WEEKS = ("2026-09-07", "2026-09-14", "2026-09-21", "2026-09-28")
MARKER = "guide-v1"
SIGN_IN = "sign-in.example.org"
ARCHIVE = "archive.example.org"
PAUSE = 1.0  # seconds: the shortest Retry-After that counts

_DOWN_WEEK = 1
_SLOW_SERVICE = 0.7  # seconds
_SLOW_HOSTS = 3
_HOSTS_WITH_SIGN_IN = 40
_REST_OF_OWN = "/moved-to-here?"


@dataclass(frozen=True)
class Look:
    """One answer of a page, in the oracle's words.

    `status` is the last one that a visitor sees, None without a usable answer. `pause` is how long the answer asks to
    stay away, `leads_to` the kind of place it redirects to.
    """

    outcome: str
    status: int | None
    page: Mapping[str, Any]
    pause: float = 0.0
    leads_to: str | None = None


LOOKS = {
    "ok": Look("reachable", 200, {"status": 200, "body": f"{MARKER}: learning resource"}),
    "gone": Look("broken", 404, {"status": 404}),
    "410": Look("broken", 410, {"status": 410}),
    "busy": Look("throttled", 429, {"status": 429, "headers": {"Retry-After": "1"}}, pause=PAUSE),
    "closed": Look("uncertain", 503, {"status": 503, "headers": {"Retry-After": "1"}}, pause=PAUSE),
    "error": Look("uncertain", 500, {"status": 500}),
    "forbidden": Look("uncertain", 403, {"status": 403}),
    "changed": Look("content_changed", 200, {"status": 200, "body": "This domain is for sale."}),
    "silent": Look("uncertain", None, {"hostile": "silent"}),
    "sign-in": Look("reachable", 200, {"status": 302}, leads_to="sign-in"),
    "moved": Look("reachable", 200, {"status": 301}, leads_to="own"),
    "archived": Look("broken", 404, {"status": 302}, leads_to="archive"),
    "down": Look("uncertain", None, {}),
}

# One word per week; `busy>ok` is what a page answers when it is asked once, and again, in that week.
FATES = (
    "ok gone gone ok",
    "ok 410 ok ok",
    "gone gone ok ok",
    "gone gone gone gone",
    "ok gone ok gone",
    "ok gone error gone",
    "gone error closed ok",
    "ok forbidden ok ok",
    "ok ok busy>ok ok",
    "ok gone busy>ok ok",
    "ok ok busy>gone gone",
    "ok changed changed ok",
    "gone changed ok changed",
    "ok ok archived ok",
    "moved moved moved gone",
)
_EVENTFUL_ONE_IN = 3
_ALONE = "ok silent ok gone"  # for hosts with one page: the servers' log knows the end of a visit that was given up
_STEADY = "ok ok ok ok"
_BEHIND_SIGN_IN = "sign-in sign-in sign-in sign-in"
_THROTTLING = "ok busy>ok ok ok"
_EXPIRED = "down down down down"

Week = tuple[Look, ...]


@dataclass(frozen=True)
class Fate:
    """A page's script: for each week what it answers when asked for the first time, the second, ...; the last stays."""

    text: str
    weeks: tuple[Week, ...]
    service: float

    @property
    def has_marker(self) -> bool:
        """Whether its link expects the marker."""
        return "changed" in self.text


@dataclass
class Script:
    """The fates of all pages by URL, and the hosts that answer for none of their pages: down in a week, or for ever.

    `hops` names the URL that a redirect's target, as (host, target), belongs to.
    """

    fates: dict[str, Fate]
    down: str
    expired: str
    hops: dict[tuple[str, str], str] = field(default_factory=dict)
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def looks(self, url: str, week: int) -> Week:
        """What a page answers in a week."""
        if host_of(url) == self.expired or (host_of(url) == self.down and week == _DOWN_WEEK):
            return (LOOKS["down"],)
        return self.fates[url].weeks[week]


def write_script(
    urls: Sequence[str], *, throttling: int, most_busy: int, sign_in_one_in: int, service: float
) -> Script:
    """Give every URL a fate, the same each time.

    Args:
        throttling: how many hosts answer 429 to every first request of a week.
        most_busy: only pages of hosts with at most so many ask for a pause.
        sign_in_one_in: of the quiet pages of the busiest hosts, one in so many leads to the sign-in host.
        service: seconds that an answer takes on average.
    """
    by_host: dict[str, list[str]] = defaultdict(list)
    for url in sorted(urls, key=_shuffled):
        by_host[host_of(url)].append(url)
    hosts = sorted(by_host, key=lambda host: (-len(by_host[host]), host))
    middle = [host for host in hosts if 4 <= len(by_host[host]) <= 9 and _has_no_twins(by_host[host])]
    small = [host for host in hosts if len(by_host[host]) == 2 and by_host[host][0].startswith("https:")]
    down, *throttled = middle[: 1 + throttling]
    slow = small[1 : 1 + _SLOW_HOSTS]
    signed_in = set(hosts[:_HOSTS_WITH_SIGN_IN]) - {down, *throttled, *slow}
    script = Script(fates={}, down=down, expired=next(h for h in small if by_host[h][1].startswith("https:")))
    number = 0
    for host in hosts:
        for place, url in enumerate(by_host[host]):
            number += 1
            if host in throttled:
                text = _THROTTLING
            elif not _is_alone_at_its_target(url, by_host[host]):
                text = _STEADY
            elif len(by_host[host]) == 1 and number % 10 == 0:
                text = _ALONE
            elif number % _EVENTFUL_ONE_IN == 0:
                text = _eventful(number // _EVENTFUL_ONE_IN, may_pause=len(by_host[host]) <= most_busy)
            else:
                text = _BEHIND_SIGN_IN if host in signed_in and place % sign_in_one_in == 0 else _STEADY
            takes = _SLOW_SERVICE if host in slow else service * (0.5 + _shuffled(url)[0] % 5 / 4)
            script.fates[url] = read_fate(text, takes)
    _build_hosts(script, by_host)
    return script


def read_fate(text: str, service: float) -> Fate:
    """A fate from its four words, its answers taking so many seconds."""
    return Fate(text, tuple(_week(word) for word in text.split()), service)


def host_of(url: str) -> str:
    """The host of a canonical URL."""
    return urlsplit(url).netloc


def target_of(url: str) -> str:
    """What is asked of the host: path and query, as in the URL."""
    return url.split("://", 1)[1].removeprefix(host_of(url))


def _shuffled(url: str) -> tuple[int, str]:
    return zlib.crc32(url.encode()), url


def _is_alone_at_its_target(url: str, urls: Sequence[str]) -> bool:
    """Whether no other scheme leads to the same page of the host: the world's pages know nothing of schemes."""
    return sum(target_of(other) == target_of(url) for other in urls) == 1


def _has_no_twins(urls: Sequence[str]) -> bool:
    return all(_is_alone_at_its_target(url, urls) for url in urls)


def _eventful(number: int, *, may_pause: bool) -> str:
    fates = [fate for fate in FATES if may_pause or not any(look.pause for w in fate.split() for look in _week(w))]
    return fates[number % len(fates)]


def _week(word: str) -> Week:
    return tuple(LOOKS[name] for name in word.split(">"))


def _build_hosts(script: Script, by_host: Mapping[str, Sequence[str]]) -> None:
    """The world that plays the script. A page that nobody wrote down answers 500, which the oracle never expects."""
    for host, urls in by_host.items():
        pages: dict[str, Any] = {}
        for url in urls:
            pages[target_of(url)] = {"weeks": list(_page_weeks(script, url))}
        script.hosts[host] = {"pages": pages, "otherwise": 500}
    for (host, target), url in script.hops.items():
        status = 404 if host == ARCHIVE else 200
        site = script.hosts.setdefault(host, {"pages": {}, "otherwise": 500})
        site["pages"][target] = {"status": status, "delay": script.fates[url].service}
    script.hosts[script.down]["down"] = [_DOWN_WEEK]
    script.hosts[script.expired]["certificate"] = "expired"


def _page_weeks(script: Script, url: str) -> Iterator[dict[str, Any]]:
    for week in script.fates[url].weeks:
        answers = [_answer(script, url, look) for look in week]
        yield answers[0] if len(answers) == 1 else {"visits": answers}


def _answer(script: Script, url: str, look: Look) -> dict[str, Any]:
    if "hostile" in look.page:
        return dict(look.page)
    answer = {**look.page, "delay": script.fates[url].service}
    if look.leads_to is None:
        return answer
    host = {"own": host_of(url), "sign-in": SIGN_IN, "archive": ARCHIVE}[look.leads_to]
    target = f"{_REST_OF_OWN}{zlib.crc32(url.encode()):08x}-{len(url)}"
    script.hops[host, target] = url
    scheme = url.split("://")[0] if look.leads_to == "own" else "https"
    return {**answer, "headers": {"Location": f"{scheme}://{host}{target}"}}
