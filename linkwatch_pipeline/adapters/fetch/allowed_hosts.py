"""A further restriction of a fetch policy: visit only named hosts, for first runs (SPEC 14, Egress)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from linkwatch_pipeline.adapters.fetch.policy import Policy
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import RefusedUrl, Url


class AllowedHosts:
    """A policy that refuses what `policy` refuses, and every host that is neither named nor below a named one."""

    def __init__(self, policy: Policy, hosts: Collection[str]) -> None:
        self._policy = policy
        self._hosts = frozenset(hosts)

    @property
    def deadline(self) -> timedelta:
        return self._policy.deadline

    @property
    def looks_up_names(self) -> bool:
        return self._policy.looks_up_names

    def judge_url(self, url: Url) -> None:
        self._policy.judge_url(url)
        if not any(url.host == host or url.host.endswith(f".{host}") for host in self._hosts):
            raise RefusedUrl(Reason.BLOCKED_URL, f"{url.host} is not among the allowed hosts")

    def judge_address(self, ip: str, port: int) -> None:
        self._policy.judge_address(ip, port)
