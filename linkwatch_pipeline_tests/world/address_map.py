"""Where a world's hosts live: all that a fetcher needs to visit it, also from another process."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy


@dataclass(frozen=True)
class AddressMap:
    """Host name to (plain address, TLS address), and the certificate authority to trust (PEM)."""

    hosts: Mapping[str, tuple[tuple[str, int], tuple[str, int]]]
    ca_pem: str

    async def resolver(self, host: str, port: int) -> list[tuple[str, int]]:
        """As `getaddrinfo` would answer in this world: port 443 is TLS, every other one plain."""
        if host not in self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"{host} is not in this world")
        plain, tls = self.hosts[host]
        return [tls if port == 443 else plain]

    @property
    def policy(self) -> FixturePolicy:
        from linkwatch_pipeline_tests.patience import PatientPolicy  # not where this file is packed beside a function

        return PatientPolicy(address for pair in self.hosts.values() for address in pair)

    @property
    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.ca_pem)

    def to_json(self) -> str:
        return json.dumps({"hosts": self.hosts, "ca_pem": self.ca_pem})

    @classmethod
    def from_json(cls, text: str) -> AddressMap:
        read = json.loads(text)
        hosts = {name: ((plain[0], plain[1]), (tls[0], tls[1])) for name, (plain, tls) in read["hosts"].items()}
        return cls(hosts=hosts, ca_pem=read["ca_pem"])


class Mapped:
    """A world that can be visited while it is open: then it has set `_map`."""

    _map: AddressMap | None = None

    @property
    def map(self) -> AddressMap:
        """Where everything is, once the world is open."""
        assert self._map is not None, "the world is not open"
        return self._map

    @property
    def policy(self) -> FixturePolicy:
        return self.map.policy

    @property
    def ssl_context(self) -> ssl.SSLContext:
        return self.map.ssl_context

    async def resolver(self, host: str, port: int) -> list[tuple[str, int]]:
        return await self.map.resolver(host, port)
