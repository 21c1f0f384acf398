"""Ready work on SQS (`ports.Queue`): visibility, receive count and dead letters are the queue's own settings.

The queue named here must have a redrive policy to the dead-letter queue named beside it; `deploy/` makes both.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from linkwatch_pipeline.adapters.aws_client import (
    SETTINGS_ERRORS,
    in_words_of_settings,
    is_of_settings,
    make_client,
)
from linkwatch_pipeline.adapters.queue.messages import read_message, write_message
from linkwatch_pipeline.domain.errors import DeadLettersElsewhere, DeadLettersLost, QueueError, QueueUnusable
from linkwatch_pipeline.domain.redaction import redacted_beginning
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import Receipt, StrayLetter

logger = logging.getLogger(__name__)

LONGEST_DELAY = timedelta(seconds=900)
LONG_POLL = timedelta(seconds=20)
_SECOND = timedelta(seconds=1)
_MOST_AT_ONCE = 10  # entries of one SQS call
_SEND_ATTEMPTS = 3  # of entries that SQS failed by a fault of its own
# A look is over in a few seconds, well before the first letter comes back by itself.
_LOOK_AT_DEAD_FOR = timedelta(seconds=30)
MOST_LETTERS_READ = 500
_MOST_LETTERS_SEARCHED = 2_000
_EMPTY_ANSWERS_AT_THE_END = 2  # a short poll asks some of SQS's servers only
_MEND_POLICY = (
    "Give the work queue a redrive policy to the queue of dead_letter_queue_url, after 5 receives, as "
    "deploy/foundation.yaml does."
)
_NOT_THERE = ("NonExistentQueue", "QueueDoesNotExist")
_NOT_ALLOWED = ("AccessDenied", "AccessDeniedException")
_NOT_KNOWN = (
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
_OUTDATED = ("ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue", "InvalidIdFormat")


@dataclass(frozen=True, slots=True)
class _Letter:
    """A dead letter in our hands: a message of ours, or an unreadable one."""

    content: CheckJob | StrayLetter
    message_id: str
    handle: str
    sent_at: int

    @property
    def name(self) -> str:
        return self.content.job_id if isinstance(self.content, CheckJob) else self.content.letter_id


class SqsQueue:
    """Messages of one work queue and its dead-letter queue. Safe to use from several threads.

    Args:
        client: a boto3 SQS client whose read timeout is longer than `wait`.
        wait: how long `receive` waits for a first message (long poll), up to 20 s.
    """

    def __init__(self, client: Any, *, queue_url: str, dead_letter_url: str, wait: timedelta = LONG_POLL) -> None:
        self._client = client
        self._url = queue_url
        self._dead_url = dead_letter_url
        self._wait = wait
        self._dead_handles: dict[str, list[str]] = {}  # by job id: those of the latest look

    @classmethod
    def connect(
        cls,
        *,
        queue_url: str,
        dead_letter_url: str,
        wait: timedelta = LONG_POLL,
        answers_within: timedelta = timedelta(seconds=10),
        attempts: int = 4,
    ) -> SqsQueue:
        """The queue, over a client of its own, with region, endpoint and credentials found the ordinary boto3 way.

        Args: answers_within: how long an answer is waited for, beyond `wait`.
        """
        from botocore.config import Config

        config = Config(
            connect_timeout=3,
            read_timeout=(wait + answers_within).total_seconds(),
            retries={"mode": "standard", "total_max_attempts": attempts},
            tcp_keepalive=True,
        )
        client = make_client("sqs", config=config, called="SQS")
        return cls(client, queue_url=queue_url, dead_letter_url=dead_letter_url, wait=wait)

    def verify(self) -> None:
        """Raise QueueError, saying why, unless the work queue answers us and its dead letters go where they are named.

        The work queue itself is asked where they go. Whether that queue is there is found out as far as we may ask: a
        worker needs no right at it. No message is touched.
        """
        with _translated(self._url):
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["RedrivePolicy"])
        policy = answer.get("Attributes", {}).get("RedrivePolicy")
        if policy is None:
            raise DeadLettersElsewhere(
                f"the work queue has no redrive policy, so that it never gives a message up. {_MEND_POLICY}"
            )
        goes_to = str(json.loads(policy).get("deadLetterTargetArn", "")).rpartition(":")[2]
        if goes_to != self._dead_url.rstrip("/").rpartition("/")[2]:
            raise DeadLettersElsewhere(f"the dead letters of the work queue go to {goes_to!r}. {_MEND_POLICY}")
        with _translated(self._dead_url):
            self._look_for_dead_queue(goes_to)

    def _look_for_dead_queue(self, name: str) -> None:
        try:
            self._client.get_queue_attributes(QueueUrl=self._dead_url, AttributeNames=["QueueArn"])
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code.endswith(_NOT_THERE):
                raise DeadLettersLost(
                    f"the redrive policy of the work queue leads to {name!r}, which somebody deleted. Make a queue of "
                    "that name again, with 14 days of retention, as deploy/foundation.yaml does."
                ) from error
            if not code.endswith(_NOT_ALLOWED):
                raise

    def send(self, jobs: Sequence[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        """Add messages that become visible after `delay`, rounded up to whole seconds.

        Raises QueueError unless it is 0 to 900 s, or if SQS does not take all messages; then some may have been sent.
        """
        _check_delay(delay)
        for start in range(0, len(jobs), _MOST_AT_ONCE):
            self._send_some(jobs[start : start + _MOST_AT_ONCE], _whole_seconds(delay))

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        """Visible messages, hidden from now on for the queue's visibility timeout; [] when none came in time.

        A text that is no message of ours is left alone and ends as a dead letter.
        """
        with _translated(self._url):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(limit, _MOST_AT_ONCE),
                WaitTimeSeconds=_whole_seconds(self._wait),
                AttributeNames=["ApproximateReceiveCount"],
            )
        return [receipt for message in answer.get("Messages", ()) if (receipt := _receipt(message)) is not None]

    def acknowledge(self, receipt: Receipt) -> None:
        """Delete the message. An outdated receipt is ignored."""
        with _translated(self._url), _outdated_is_ignored():
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt.handle)

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        """Let the message come back after `delay`. An outdated receipt is ignored."""
        _check_delay(delay)
        with _translated(self._url), _outdated_is_ignored():
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt.handle, VisibilityTimeout=_whole_seconds(delay)
            )

    def next_visible_in(self) -> timedelta | None:
        """None: with SQS nobody can know; a long poll waits instead."""
        return None

    def visible(self) -> int:
        """How many messages could be received now; SQS's own number is some seconds old."""
        name = "ApproximateNumberOfMessages"
        with _translated(self._url):
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def dead_letters(self) -> list[CheckJob]:
        """Some 500 of the messages that were given up, oldest first, one per job.

        They are hidden from other readers while they are read, for some ten milliseconds a message.
        """
        jobs = [content for content in self._dead_contents() if isinstance(content, CheckJob)]
        return list({job.job_id: job for job in jobs}.values())

    def unreadable_letters(self) -> list[StrayLetter]:
        """Those among some 500 letters that are no message, oldest first; hidden from other readers meanwhile."""
        return [content for content in self._dead_contents() if isinstance(content, StrayLetter)]

    def remove_dead_letter(self, job_id: str) -> bool:
        """Delete every copy among the dead letters, an unreadable one by its `letter_id`; whether there was one.

        One that the latest look found is deleted without a search. If somebody else has read it since, it may stay: the
        next look finds it then.
        """
        if (handles := self._dead_handles.pop(job_id, None)) is not None:
            for handle in handles:
                self._delete_dead(handle)
            return True
        with self._looking_at_dead(most=_MOST_LETTERS_SEARCHED) as letters:
            found = [letter for letter in letters if letter.name == job_id]
            for letter in found:
                self._delete_dead(letter.handle)
                letters.remove(letter)
        return bool(found)

    def _delete_dead(self, handle: str) -> None:
        with _translated(self._dead_url), _outdated_is_ignored():
            self._client.delete_message(QueueUrl=self._dead_url, ReceiptHandle=handle)

    def _send_some(self, jobs: Sequence[CheckJob], delay_seconds: int) -> None:
        left = {
            str(number): {"Id": str(number), "MessageBody": write_message(job), "DelaySeconds": delay_seconds}
            for number, job in enumerate(jobs)
        }
        failed: list[Any] = []
        for _ in range(_SEND_ATTEMPTS):
            with _translated(self._url):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=list(left.values()))
            failed = answer.get("Failed", [])
            left = {each["Id"]: left[each["Id"]] for each in failed}
            if not left or any(each.get("SenderFault") for each in failed):
                break
        if failed:
            told = "; ".join(sorted({f"{each.get('Code')}: {each.get('Message', '')}" for each in failed}))
            raise QueueError(f"SQS did not take {len(failed)} of {len(jobs)} messages ({told}).")

    @contextmanager
    def _looking_at_dead(self, *, most: int) -> Iterator[list[_Letter]]:
        """Dead letters, about so many at most, given back at the end unless they were taken out of the list."""
        letters: list[_Letter] = []
        try:
            self._read_dead(letters, most)
            yield letters
        finally:
            self._give_back(letters)

    def _dead_contents(self) -> list[CheckJob | StrayLetter]:
        with self._looking_at_dead(most=MOST_LETTERS_READ) as letters:
            found = sorted(letters, key=lambda letter: letter.sent_at)
        self._dead_handles = {}
        for letter in found:
            self._dead_handles.setdefault(letter.name, []).append(letter.handle)
        return [letter.content for letter in found]

    def _read_dead(self, letters: list[_Letter], most: int) -> None:
        """Add letters until there are no others, or enough."""
        # Nothing is hidden yet while the first ones are waited for.
        letters += self._receive_dead(wait=min(self._wait, _SECOND))
        seen = {letter.message_id for letter in letters}
        empty = 0 if letters else _EMPTY_ANSWERS_AT_THE_END
        while empty < _EMPTY_ANSWERS_AT_THE_END and len(letters) < most:
            some = self._receive_dead(wait=timedelta(0))
            letters += some
            if not seen.isdisjoint(letter.message_id for letter in some):
                return  # the first ones are back already
            seen.update(letter.message_id for letter in some)
            empty = 0 if some else empty + 1

    def _receive_dead(self, *, wait: timedelta) -> list[_Letter]:
        with _translated(self._dead_url):
            answer = self._client.receive_message(
                QueueUrl=self._dead_url,
                MaxNumberOfMessages=_MOST_AT_ONCE,
                WaitTimeSeconds=_whole_seconds(wait),
                VisibilityTimeout=_whole_seconds(_LOOK_AT_DEAD_FOR),
                AttributeNames=["SentTimestamp"],
            )
        return [_letter(message) for message in answer.get("Messages", ())]

    def _give_back(self, letters: Sequence[_Letter]) -> None:
        for start in range(0, len(letters), _MOST_AT_ONCE):
            some = letters[start : start + _MOST_AT_ONCE]
            entries = [
                {"Id": str(number), "ReceiptHandle": letter.handle, "VisibilityTimeout": 0}
                for number, letter in enumerate(some)
            ]
            with _translated(self._dead_url):
                self._client.change_message_visibility_batch(QueueUrl=self._dead_url, Entries=entries)


def _receipt(message: Any) -> Receipt | None:
    try:
        job = read_message(message["Body"])
    except ValueError as problem:
        logger.error(str(problem), extra={"action": "drop", "message_id": message["MessageId"]})
        return None
    count = int(message["Attributes"]["ApproximateReceiveCount"])
    return Receipt(job=job, handle=message["ReceiptHandle"], receive_count=count)


def _letter(message: Any) -> _Letter:
    content: CheckJob | StrayLetter
    try:
        content = read_message(message["Body"])
    except ValueError as problem:
        content = StrayLetter(
            letter_id=message["MessageId"], problem=str(problem), beginning=redacted_beginning(message["Body"])
        )
    return _Letter(content, message["MessageId"], message["ReceiptHandle"], int(message["Attributes"]["SentTimestamp"]))


def _whole_seconds(duration: timedelta) -> int:
    return -(-duration // _SECOND)


def _check_delay(delay: timedelta) -> None:
    if not timedelta(0) <= delay <= LONGEST_DELAY:
        raise QueueError(f"a message can be delayed by 0 to {LONGEST_DELAY.total_seconds():.0f} s, not by {delay}")


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Errors in our words. Args: url: of the queue that is asked."""
    try:
        yield
    except (ClientError, BotoCoreError, *SETTINGS_ERRORS) as exc:
        if is_of_settings(exc):
            raise QueueUnusable(in_words_of_settings(f"SQS, asked for {url},", exc)) from exc
        if _is_for_good(exc):
            raise QueueUnusable(
                f"SQS cannot serve: {str(exc).rstrip('.')}. Nothing can be done with the queue {url}: look at its URL, "
                "at region and credentials, and at what the role may do with it."
            ) from exc
        raise QueueError(f"SQS cannot serve, asked for {url}: {exc}") from exc


def _is_for_good(error: Exception) -> bool:
    """Whether the same call would fail in the same way until a person has changed something."""
    if isinstance(error, ClientError):
        return bool(error.response["Error"]["Code"].endswith((*_NOT_THERE, *_NOT_ALLOWED, *_NOT_KNOWN)))
    return isinstance(error, NoCredentialsError | NoRegionError)


@contextmanager
def _outdated_is_ignored() -> Iterator[None]:
    try:
        yield
    except ClientError as exc:
        if not exc.response["Error"]["Code"].endswith(_OUTDATED):
            raise
