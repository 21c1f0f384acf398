"""Ready work on SQS (`ports.Queue`): visibility, receive count and dead letters are the queue's own settings.

The queue named here must have a redrive policy to the dead-letter queue named beside it; `deploy/` makes both.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from linkwatch_pipeline.adapters.aws_client import make_client
from linkwatch_pipeline.adapters.queue.messages import read_message, write_message
from linkwatch_pipeline.adapters.queue.sqs_dead_letters import MOST_AT_ONCE, DeadLetters
from linkwatch_pipeline.adapters.queue.sqs_errors import outdated_is_ignored, translated
from linkwatch_pipeline.domain.errors import DeadLettersElsewhere, QueueError
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import Receipt, StrayLetter

logger = logging.getLogger(__name__)

LONGEST_DELAY = timedelta(seconds=900)
LONG_POLL = timedelta(seconds=20)
_SECOND = timedelta(seconds=1)
_DEAD_WAIT = _SECOND  # for a first dead letter: somebody looks at the screen meanwhile
_SEND_ATTEMPTS = 3  # of entries that SQS failed by a fault of its own
_MEND_POLICY = (
    "Give the work queue a redrive policy to the queue of dead_letter_queue_url, after 5 receives, as "
    "deploy/foundation.yaml does."
)


class SqsQueue:
    """Messages of one work queue and its dead-letter queue. Safe to use from several threads.

    Args:
        client: a boto3 SQS client; its read timeout is longer than a second, for which a dead letter is waited for.
        poller: one for `receive`, whose read timeout is longer than `wait`; None: the same.
        wait: how long `receive` waits for a first message (long poll), up to 20 s.
    """

    def __init__(
        self,
        client: Any,
        *,
        queue_url: str,
        dead_letter_url: str,
        wait: timedelta = LONG_POLL,
        poller: Any | None = None,
    ) -> None:
        self._client = client
        self._poller = client if poller is None else poller
        self._url = queue_url
        self._dead_url = dead_letter_url
        self._wait = wait
        self._dead = DeadLetters(client, dead_letter_url, wait=min(_whole_seconds(wait) * _SECOND, _DEAD_WAIT))

    @classmethod
    def connect(
        cls,
        *,
        queue_url: str,
        dead_letter_url: str,
        wait: timedelta = LONG_POLL,
        answers_within: timedelta = timedelta(seconds=5),
        attempts: int = 3,
    ) -> SqsQueue:
        """The queue, over clients of its own, with region, endpoint and credentials found the ordinary boto3 way.

        A queue that is silent is told after 21 s at most, by a long poll after 25 s: that one is not repeated here,
        since whoever polls comes back by itself.

        Args: answers_within: how long an answer is waited for, beyond the time for which a message is.
        """
        client = _client(min(wait, _DEAD_WAIT) + answers_within, attempts=attempts)
        poller = _client(wait + answers_within, attempts=1) if wait > _DEAD_WAIT else None
        return cls(client, queue_url=queue_url, dead_letter_url=dead_letter_url, wait=wait, poller=poller)

    def verify(self) -> None:
        """Raise QueueError, saying why, unless the work queue answers us and its dead letters go where they are named.

        The work queue itself is asked where they go. Whether that queue is there is found out as far as we may ask: a
        worker needs no right at it. No message is touched.
        """
        with translated(self._url):
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["RedrivePolicy"])
        policy = answer.get("Attributes", {}).get("RedrivePolicy")
        if policy is None:
            raise DeadLettersElsewhere(
                f"the work queue has no redrive policy, so that it never gives a message up. {_MEND_POLICY}"
            )
        goes_to = str(json.loads(policy).get("deadLetterTargetArn", "")).rpartition(":")[2]
        if goes_to != self._dead_url.rstrip("/").rpartition("/")[2]:
            raise DeadLettersElsewhere(f"the dead letters of the work queue go to {goes_to!r}. {_MEND_POLICY}")
        self._dead.verify(goes_to)

    def send(self, jobs: Sequence[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        """Add messages that become visible after `delay`, rounded up to whole seconds.

        Raises QueueError unless it is 0 to 900 s, or if SQS does not take all messages; then some may have been sent.
        """
        _check_delay(delay)
        for start in range(0, len(jobs), MOST_AT_ONCE):
            self._send_some(jobs[start : start + MOST_AT_ONCE], _whole_seconds(delay))

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        """Visible messages, hidden from now on for the queue's visibility timeout; [] when none came in time.

        A text that is no message of ours is left alone and ends as a dead letter.
        """
        with translated(self._url):
            answer = self._poller.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(limit, MOST_AT_ONCE),
                WaitTimeSeconds=_whole_seconds(self._wait),
                AttributeNames=["ApproximateReceiveCount"],
            )
        return [receipt for message in answer.get("Messages", ()) if (receipt := _receipt(message)) is not None]

    def acknowledge(self, receipt: Receipt) -> None:
        """Delete the message. An outdated receipt is ignored."""
        with translated(self._url), outdated_is_ignored():
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt.handle)

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        """Let the message come back after `delay`. An outdated receipt is ignored."""
        _check_delay(delay)
        with translated(self._url), outdated_is_ignored():
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt.handle, VisibilityTimeout=_whole_seconds(delay)
            )

    def next_visible_in(self) -> timedelta | None:
        """None: with SQS nobody can know; a long poll waits instead."""
        return None

    def visible(self) -> int:
        """How many messages could be received now; SQS's own number is some seconds old."""
        name = "ApproximateNumberOfMessages"
        with translated(self._url):
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def dead_letters(self) -> list[CheckJob]:
        """Some 500 of the messages that were given up, oldest first, one per job.

        They are hidden from other readers while they are read, for some ten milliseconds a message.
        """
        return self._dead.jobs()

    def unreadable_letters(self) -> list[StrayLetter]:
        """Those among some 500 letters that are no message, oldest first; hidden from other readers meanwhile."""
        return self._dead.unreadable()

    def remove_dead_letter(self, job_id: str) -> bool:
        """Delete every copy among the dead letters, an unreadable one by its `letter_id`; whether there was one.

        One that the latest look found is deleted without a search. If somebody else has read it since, it may stay: the
        next look finds it then.
        """
        return self._dead.remove(job_id)

    def _send_some(self, jobs: Sequence[CheckJob], delay_seconds: int) -> None:
        left = {
            str(number): {"Id": str(number), "MessageBody": write_message(job), "DelaySeconds": delay_seconds}
            for number, job in enumerate(jobs)
        }
        failed: list[Any] = []
        for _ in range(_SEND_ATTEMPTS):
            with translated(self._url):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=list(left.values()))
            failed = answer.get("Failed", [])
            left = {each["Id"]: left[each["Id"]] for each in failed}
            if not left or any(each.get("SenderFault") for each in failed):
                break
        if failed:
            told = "; ".join(sorted({f"{each.get('Code')}: {each.get('Message', '')}" for each in failed}))
            raise QueueError(f"SQS did not take {len(failed)} of {len(jobs)} messages ({told}).")


def _client(read_timeout: timedelta, *, attempts: int) -> Any:
    from botocore.config import Config

    config = Config(
        connect_timeout=3,
        read_timeout=read_timeout.total_seconds(),
        retries={"mode": "standard", "total_max_attempts": attempts},
        tcp_keepalive=True,
    )
    return make_client("sqs", config=config, called="SQS")


def _receipt(message: Any) -> Receipt | None:
    try:
        job = read_message(message["Body"])
    except ValueError as problem:
        logger.error(str(problem), extra={"action": "drop", "message_id": message["MessageId"]})
        return None
    count = int(message["Attributes"]["ApproximateReceiveCount"])
    return Receipt(job=job, handle=message["ReceiptHandle"], receive_count=count)


def _whole_seconds(duration: timedelta) -> int:
    return -(-duration // _SECOND)


def _check_delay(delay: timedelta) -> None:
    if not timedelta(0) <= delay <= LONGEST_DELAY:
        raise QueueError(f"a message can be delayed by 0 to {LONGEST_DELAY.total_seconds():.0f} s, not by {delay}")
