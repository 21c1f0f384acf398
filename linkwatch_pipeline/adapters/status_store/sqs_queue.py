"""The queue between monitor and processor on SQS (`ports.StatusQueue`). The body is the original's message."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from linkwatch_pipeline.domain.errors import ConfigurationError, MissingExtra, QueueError
from linkwatch_pipeline.domain.service_status import ServiceCheck, StatusMessage, encode_check

logger = logging.getLogger(__name__)

RECEIVED_TOGETHER = 10
_TRIES = 3
_REFUSED = "refused"  # a message attribute; readers that do not know it are not disturbed
_REGION = "Set AWS_DEFAULT_REGION, and AWS_PROFILE if the machine has several."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SqsStatusQueue:
    """One SQS queue. Safe to use from several threads.

    Args:
        url: the queue's.
        client: boto3's SQS client; None makes one (`sqs_client`).
        wait_seconds: how long `receive` waits for a message.
    """

    def __init__(self, url: str, *, client: Any = None, wait_seconds: int = 5) -> None:
        self._url = url
        self._client = client if client is not None else sqs_client(url)
        self._wait = wait_seconds

    def send(self, checks: Sequence[ServiceCheck]) -> list[ServiceCheck]:
        """At most ten. What was certainly not taken is tried again; what may have been is not, or it would be two."""
        waiting = list(checks)
        for _ in range(_TRIES):
            waiting, is_certain = self._send_once(waiting)
            if not waiting or not is_certain:
                break
        return waiting

    def receive(self) -> list[StatusMessage]:
        answer = self._called(
            "receive_message",
            QueueUrl=self._url,
            MaxNumberOfMessages=RECEIVED_TOGETHER,
            WaitTimeSeconds=self._wait,
            AttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
            MessageAttributeNames=[_REFUSED],
        )
        return [_received(message) for message in answer.get("Messages", ())]

    def acknowledge(self, messages: Sequence[StatusMessage]) -> None:
        if not messages:
            return
        entries = [{"Id": str(number), "ReceiptHandle": m.handle} for number, m in enumerate(messages)]
        answer = self._called("delete_message_batch", QueueUrl=self._url, Entries=entries)
        for failed in answer.get("Failed", ()):  # it comes back, and is written once more
            logger.warning("message not deleted: %s", failed.get("Code"), extra={"action": "process"})

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _send_once(self, checks: list[ServiceCheck]) -> tuple[list[ServiceCheck], bool]:
        """The checks that were not taken, and whether that is certain."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectTimeoutError,
            EndpointConnectionError,
        )

        entries = [_entry(str(number), check) for number, check in enumerate(checks)]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            logger.warning("queue not reached: %s", error, extra={"action": "monitor"})
            return checks, True
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            logger.warning("queue refused: %s", error, extra={"action": "monitor"})
            return checks, status < 500
        except BotoCoreError as error:
            logger.warning("queue did not answer: %s", error, extra={"action": "monitor"})
            return checks, False
        failed = {int(entry["Id"]) for entry in answer.get("Failed", ())}
        return [check for number, check in enumerate(checks) if number in failed], True

    def _called(self, name: str, **arguments: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(self._client, name)(**arguments)
        except (BotoCoreError, ClientError) as error:
            raise QueueError(f"the queue of SQS_QUEUE_URL does not answer: {error}") from error
        return answer


def sqs_client(url: str) -> Any:
    """A client that makes each call once: botocore's own retries would send again what may have been taken.

    Raises: MissingExtra, ConfigurationError if there is no region.
    """
    try:
        from botocore.config import Config

        from linkwatch_pipeline.adapters.aws_client import make_client
    except ImportError:
        raise MissingExtra("aws", "a queue on SQS (SQS_QUEUE_URL)") from None
    retries = {"mode": "standard", "total_max_attempts": 1}
    config = Config(connect_timeout=2, read_timeout=10, retries=retries, max_pool_connections=4)
    try:
        return make_client("sqs", config=config, called="SQS", **_region(url))
    except ConfigurationError as error:
        raise ConfigurationError(f"no client for SQS_QUEUE_URL: {error} {_REGION}") from error


def message_from_event(record: Mapping[str, Any]) -> StatusMessage:
    """A record of a Lambda event. Raises KeyError, TypeError or ValueError if it is not SQS's."""
    return StatusMessage(
        message_id=str(record["messageId"]),
        sent_at=_sent_at(record["attributes"]["SentTimestamp"]),
        body=str(record["body"]),
        refused=_REFUSED in (record.get("messageAttributes") or {}),
        handle=str(record.get("receiptHandle", "")),
    )


def _received(message: Mapping[str, Any]) -> StatusMessage:
    return StatusMessage(
        message_id=message["MessageId"],
        sent_at=_sent_at(message["Attributes"]["SentTimestamp"]),
        body=message["Body"],
        refused=_REFUSED in message.get("MessageAttributes", {}),
        handle=message["ReceiptHandle"],
        receive_count=int(message["Attributes"].get("ApproximateReceiveCount", 1)),
    )


def _entry(name: str, check: ServiceCheck) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": name, "MessageBody": encode_check(check)}
    if check.refused:
        entry["MessageAttributes"] = {_REFUSED: {"DataType": "String", "StringValue": "true"}}
    return entry


def _sent_at(milliseconds: str | int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=int(milliseconds))
    except OverflowError:
        raise ValueError(f"no moment: {milliseconds}") from None


def _region(url: str) -> dict[str, str]:
    """The region in a queue's URL, if it is one of AWS: then no other setting needs to say it."""
    host = url.partition("//")[2].partition("/")[0].split(".")
    return {"region_name": host[1]} if len(host) > 3 and host[0] == "sqs" and "amazonaws" in host else {}
