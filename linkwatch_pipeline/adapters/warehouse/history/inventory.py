"""The links of a made-up handbook: hosts of very different sizes, owners by topic, files with lines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime

from linkwatch_pipeline.domain.handbook import scanned_link_id
from linkwatch_pipeline.domain.links import Link, Owner, Place

LINKS_PER_HOST = 6
_LINKS_PER_FILE = 7
_MARKER_EVERY = 20
_TOPICS = ("delivery", "design", "engineering", "hiring", "leave", "security", "tools", "travel")
_WORDS = (
    "access", "account", "alerts", "api", "audit", "backup", "billing", "branch", "build", "cluster", "cost",
    "deploy", "design", "docs", "drill", "email", "feedback", "forms", "guide", "handover", "incident", "install",
    "keys", "leave", "logs", "metrics", "naming", "network", "onboarding", "pager", "payroll", "policy", "privacy",
    "python", "queue", "records", "reference", "release", "review", "roadmap", "rota", "runbook", "schema",
    "security", "setup", "storage", "style", "team", "testing", "token", "tools", "training", "travel", "upgrade",
    "user", "vendor", "vpn", "webhook", "writing",
)  # fmt: skip
_ENDS = ("example", "example.com", "example.net", "example.org")


def owners() -> list[Owner]:
    """A team for each topic."""
    return [Owner(team=f"{topic}-team", address=f"{topic}@example.com") for topic in _TOPICS]


class Inventory:
    """`links` links that were registered at `active_since`; the same seed gives the same ones.

    `host_of` has each link's host by its number; hosts are numbered by size, the busiest first.
    """

    def __init__(self, links: int, *, seed: int, active_since: datetime) -> None:
        chance = random.Random(f"inventory {seed}")
        self._active_since = active_since
        hosts = max(1, links // LINKS_PER_HOST)
        self.hosts = [_host(number, chance) for number in range(hosts)]
        # The cube gathers links on few hosts: one in sixteen thousand has 4 % of them, one in three hundred 15 %.
        self.host_of = [int(hosts * chance.random() ** 3) for _ in range(links)]
        self.urls = [self._url(number, chance) for number in range(links)]
        self.ids = [scanned_link_id(url) for url in self.urls]

    def __len__(self) -> int:
        return len(self.urls)

    def __iter__(self) -> Iterator[Link]:
        return (self.link(number) for number in range(len(self)))

    def link(self, number: int) -> Link:
        """A link as it was registered, by its number."""
        file = number // _LINKS_PER_FILE
        topic = _TOPICS[file % len(_TOPICS)]
        name = f"pages/{topic}/{_WORDS[file // len(_TOPICS) % len(_WORDS)]}-{file}.md"
        places = [Place(file=name, line=5 + 3 * (number % _LINKS_PER_FILE))]
        if number % 9 == 0:
            places.append(Place(file=f"pages/{topic}/index.md", line=10 + number // 9))
        return Link(
            id=self.ids[number],
            url=self.urls[number],
            host=self.hosts[self.host_of[number]],
            owner=f"{topic}-team",
            marker="Guide" if self.has_marker(number) else None,
            active_since=self._active_since,
            places=tuple(places),
            allocations={},
        )

    def has_marker(self, number: int) -> bool:
        """Whether the link expects a text."""
        return number % _MARKER_EVERY == 0

    def _url(self, number: int, chance: random.Random) -> str:
        """The number makes it the only one of its kind."""
        words = "/".join(chance.choices(_WORDS, k=1 + number % 3))
        return f"https://{self.hosts[self.host_of[number]]}/{words}-{number}"


def _host(number: int, chance: random.Random) -> str:
    first, second = chance.sample(_WORDS, 2)
    return f"{first}.{second}-{number}.{chance.choice(_ENDS)}" if number % 3 else f"{first}-{number}.{_ENDS[0]}"
