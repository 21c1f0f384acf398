"""Clients of AWS that nobody answers, without the waiting."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError


@dataclass
class Silence:
    """What callers would have waited, in seconds: for answers, and between attempts."""

    waits: list[float] = field(default_factory=list)

    def around(self, client: Any) -> None:
        def no_answer(request: Any, **_: object) -> None:
            self.waits.append(client.meta.config.read_timeout)
            raise ReadTimeoutError(endpoint_url=request.url)

        client.meta.events.register("before-send", no_answer)


def silence(monkeypatch: pytest.MonkeyPatch) -> Silence:
    """A silence for clients that are made from now on, with credentials that are good for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    found = Silence()
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=found.waits.append))
    return found
