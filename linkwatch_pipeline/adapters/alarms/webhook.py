"""Alarms posted to a URL that the operator chose: a chat, a pager, anything that takes JSON."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

import httpx

from linkwatch_pipeline.adapters.alarms.documents import alarm_document
from linkwatch_pipeline.domain.alarms import Alarm
from linkwatch_pipeline.domain.errors import AlarmNotTaken

TIMEOUT_SECONDS = 10.0


class AlarmWebhook:
    """`ports.AlarmDestination`: one POST, taken when the answer is 2xx. Redirects are not followed.

    The URL may be a secret; what is said and logged names its host only. Unlike a watched link it is the operator's
    own and may lead anywhere, to this machine too.
    """

    def __init__(self, url: str, *, user_agent: str, ssl_context: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._host = urlsplit(url).hostname
        self._headers = {"User-Agent": user_agent}
        self._verify = ssl_context

    def tell(self, alarm: Alarm) -> None:
        try:
            with httpx.Client(
                verify=self._verify if self._verify is not None else True, timeout=TIMEOUT_SECONDS
            ) as client:
                with client.stream("POST", self._url, json=alarm_document(alarm), headers=self._headers) as answer:
                    status = answer.status_code  # its body says nothing to us, however long it is
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise AlarmNotTaken(f"ops_webhook at {self._host} cannot be reached: {type(error).__name__}.") from None
        if not 200 <= status < 300:
            raise AlarmNotTaken(f"ops_webhook at {self._host} answered {status}; it takes an alarm with 2xx.")
