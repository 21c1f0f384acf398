"""Alarms posted to a URL that the operator chose: a chat, a pager, anything that takes JSON."""

from __future__ import annotations

import asyncio
import ssl
import threading
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

import httpx

from linkwatch_pipeline.adapters.alarms.documents import Document, alarm_document
from linkwatch_pipeline.domain.alarms import Alarm
from linkwatch_pipeline.domain.errors import AlarmNotTaken

TOTAL_SECONDS = 10.0


class AlarmWebhook:
    """`ports.AlarmDestination`: one POST, taken when the answer is 2xx. Redirects are not followed.

    The URL may be a secret; what is said and logged names its host only. Unlike a watched link it is the operator's
    own and may lead anywhere, to this machine too.

    Args: total_seconds: how long one call may take in all, from the look-up of the name to the answer's headers.
    """

    def __init__(
        self,
        url: str,
        *,
        user_agent: str,
        ssl_context: ssl.SSLContext | None = None,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._url = url
        self._host = urlsplit(url).hostname
        self._headers = {"User-Agent": user_agent}
        self._verify = ssl_context
        self._total_seconds = total_seconds

    def tell(self, alarm: Alarm) -> None:
        answer = self._post_in_time(alarm_document(alarm))
        if isinstance(answer, (httpx.HTTPError, httpx.InvalidURL, OSError)):  # TimeoutError is an OSError
            raise AlarmNotTaken(f"ops_webhook at {self._host} cannot be reached: {type(answer).__name__}.")
        if isinstance(answer, Exception):
            raise answer
        if not 200 <= answer < 300:
            raise AlarmNotTaken(f"ops_webhook at {self._host} answered {answer}; it takes an alarm with 2xx.")

    def _post_in_time(self, document: Document) -> int | Exception:
        """The answer's status, or what failed. The thread ends by itself; only a name server can hold it longer."""
        answers: SimpleQueue[int | Exception] = SimpleQueue()

        def call() -> None:
            try:
                answers.put(asyncio.run(self._post(document)))
            except Exception as error:  # told to whoever waits
                answers.put(error)

        threading.Thread(target=call, name="ops-webhook", daemon=True).start()
        try:
            return answers.get(timeout=self._total_seconds + 1)
        except Empty:
            return TimeoutError()

    async def _post(self, document: Document) -> int:
        verify = self._verify if self._verify is not None else True
        # One deadline for everything: httpx's own is for each read, and a server that drips never runs into it.
        async with asyncio.timeout(self._total_seconds), httpx.AsyncClient(verify=verify, timeout=None) as client:
            async with client.stream("POST", self._url, json=document, headers=self._headers) as answer:
                return answer.status_code  # its body says nothing to us, however long it is
