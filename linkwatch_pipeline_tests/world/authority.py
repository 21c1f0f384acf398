"""The certificate authority of a world, and the certificates of its servers, good and bad."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

import trustme

KINDS = ("good", "wrong_name", "expired", "unknown_ca", "common_name")
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_NOT_SO_LONG_AGO = datetime(2020, 2, 1, tzinfo=UTC)


class Authority:
    """Issues certificates when a server first needs one, so that a thousand hosts cost nothing until visited."""

    def __init__(self) -> None:
        self._trusted = trustme.CA()
        self._context = cache(self._issue)

    @property
    def pem(self) -> str:
        return self._trusted.cert_pem.bytes().decode("ascii")

    def server_context(
        self, host: str, certificate: str, *, hello: Callable[[ssl.SSLObject], None]
    ) -> ssl.SSLContext | None:
        """The TLS side of a server; None to speak plain HTTP there. For `certificate` see `scripts.Site`.

        Args: hello: called when a client begins, before anything costs time.
        """
        if certificate == "none":
            return None
        if certificate not in KINDS:
            raise ValueError(f"{certificate!r} is no kind of certificate; there are {', '.join(KINDS)} and none")

        def choose(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            hello(connection)
            connection.context = self._context(host, certificate)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = choose
        return context

    def _issue(self, host: str, certificate: str) -> ssl.SSLContext:
        match certificate:
            case "good":
                issued = self._trusted.issue_cert(host)
            case "wrong_name":
                issued = self._trusted.issue_cert("somebody-else.example.com")
            case "common_name":  # the host's name stands only where it stood before RFC 2818
                issued = self._trusted.issue_cert("a@example.com", common_name=host)
            case "expired":
                issued = self._trusted.issue_cert(host, not_before=_LONG_AGO, not_after=_NOT_SO_LONG_AGO)
            case _:
                issued = trustme.CA().issue_cert(host)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued.configure_cert(context)
        return context
