"""How the hosts of a world answer: one answer, one per week, one per visit, or bytes of one's own choosing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from linkwatch_pipeline_tests.world import hostile


@dataclass(frozen=True)
class Request:
    """A request as it came. `week` is the world's; `visit` counts the requests for this URL before it, and
    `visit_this_week` those of this week."""

    host: str
    target: str
    headers: Mapping[str, str]
    week: int
    visit: int
    visit_this_week: int = 0


# Writes whatever it likes; the connection is closed when it returns.
Behaviour = Callable[[Request, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """An ordinary answer. `delay` is seconds before its first byte, which does not come before the week `from_week`."""

    status: int = 200
    body: str = "guide-v1: learning resource"
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    from_week: int = 0

    @classmethod
    def redirect(cls, location: str, status: int = 302) -> Answer:
        return cls(status=status, body="", headers={"Location": location})

    def to_bytes(self) -> bytes:
        body = b"" if self.status in (204, 304) else self.body.encode()
        lines = [f"HTTP/1.1 {self.status} Scripted", f"Content-Type: {self.content_type}"]
        lines += [f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(frozen=True)
class visits:  # noqa: N801 - reads as a word in scripts
    """One answer per visit; the last one stays."""

    answers: tuple[Answer | Behaviour, ...]

    def __init__(self, *answers: int | Answer | Behaviour) -> None:
        object.__setattr__(self, "answers", tuple(map(_one, answers)))

    def choose(self, request: Request) -> Answer | Behaviour:
        return self.answers[min(request.visit, len(self.answers) - 1)]


@dataclass(frozen=True)
class weekly:  # noqa: N801 - reads as a word in scripts
    """One answer per week, or `visits` of that week; the last one stays."""

    answers: tuple[Answer | Behaviour | visits, ...]

    def __init__(self, *answers: int | Answer | Behaviour | visits) -> None:
        object.__setattr__(self, "answers", tuple(map(_one, answers)))

    def choose(self, request: Request) -> Answer | Behaviour:
        answer = self.answers[min(request.week, len(self.answers) - 1)]
        if isinstance(answer, visits):
            return answer.choose(replace(request, visit=request.visit_this_week))
        return answer


Script = int | Answer | Behaviour | weekly | visits


@dataclass(frozen=True)
class Site:
    """A host. A target is looked for in `pages` whole, then without its query; others get `otherwise`.

    `down` True refuses every connection; the weeks named reset them. `greeting` replaces HTTP altogether: it is
    called as soon as somebody connects. `certificate` is `good`, `wrong_name`, `expired`, `unknown_ca`, `common_name`,
    or `none` for plain HTTP on the TLS port.
    """

    pages: Mapping[str, Script] = field(default_factory=dict)
    otherwise: Script = 404
    down: bool | Sequence[int] = False
    greeting: Behaviour | None = None
    certificate: str = "good"

    def answer_to(self, request: Request) -> Answer | Behaviour:
        by_path = self.pages.get(request.target.partition("?")[0], self.otherwise)
        script = self.pages.get(request.target, by_path)
        return script.choose(request) if isinstance(script, weekly | visits) else _one(script)

    def is_down_in(self, week: int) -> bool:
        return not isinstance(self.down, bool) and week in self.down


def site_from_json(site: Mapping[str, Any]) -> Site:
    """`{"pages": {"/a": 200, "/b": {"weeks": [200, 404]}, "/c": {"visits": [{"status": 429}, 200]},
    "/d": {"hostile": "trickle_body"}}, "otherwise": ..., "down": [1], "greeting": "accept_rst", ...}`; a week may have
    visits of its own.
    """
    known: dict[str, Any] = dict(site)
    known["pages"] = {target: _script_from_json(script) for target, script in site.get("pages", {}).items()}
    if "otherwise" in known:
        known["otherwise"] = _script_from_json(known["otherwise"])
    if "greeting" in known:
        known["greeting"] = hostile.BEHAVIOURS[known["greeting"]]
    return Site(**known)


def _script_from_json(script: Any) -> Script:
    if isinstance(script, int):
        return script
    if "weeks" in script:
        return weekly(*(_one(_script_from_json(answer)) for answer in script["weeks"]))
    if "visits" in script:
        return visits(*(_one(_script_from_json(answer)) for answer in script["visits"]))
    if "hostile" in script:
        return hostile.BEHAVIOURS[script["hostile"]]
    return Answer(**script)


def _one(script: Any) -> Any:
    return Answer(status=script) if isinstance(script, int) else script
