"""The dead-letter queue of a work queue on SQS: looked through by receiving, and given back at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from linkwatch_pipeline.adapters.queue.messages import read_message
from linkwatch_pipeline.adapters.queue.sqs_errors import NOT_ALLOWED, NOT_THERE, outdated_is_ignored, translated
from linkwatch_pipeline.domain.errors import DeadLettersLost
from linkwatch_pipeline.domain.redaction import redacted_beginning
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import StrayLetter

MOST_AT_ONCE = 10  # entries of one SQS call
# A look is over in a few seconds, well before the first letter comes back by itself.
_LOOK_FOR = timedelta(seconds=30)
MOST_LETTERS_READ = 500
_MOST_LETTERS_SEARCHED = 2_000
_EMPTY_ANSWERS_AT_THE_END = 2  # a short poll asks some of SQS's servers only


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


class DeadLetters:
    """What was given up. Args: client, url: as of `SqsQueue`; wait: for the first letter, whole seconds."""

    def __init__(self, client: Any, url: str, *, wait: timedelta) -> None:
        self._client = client
        self._url = url
        self._wait = wait
        self._handles: dict[str, list[str]] = {}  # by job id: those of the latest look

    def verify(self, name: str) -> None:
        """Raise DeadLettersLost if it, called `name`, is not there, as far as we may ask: a worker needs no right."""
        with translated(self._url):
            try:
                self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code.endswith(NOT_THERE):
                    raise DeadLettersLost(
                        f"the redrive policy of the work queue leads to {name!r}, which somebody deleted. Make a queue "
                        "of that name again, with 14 days of retention, as deploy/foundation.yaml does."
                    ) from error
                if not code.endswith(NOT_ALLOWED):
                    raise

    def jobs(self) -> list[CheckJob]:
        """Some 500 of them, oldest first, one per job."""
        jobs = [content for content in self._contents() if isinstance(content, CheckJob)]
        return list({job.job_id: job for job in jobs}.values())

    def unreadable(self) -> list[StrayLetter]:
        """Those among some 500 that are no message, oldest first."""
        return [content for content in self._contents() if isinstance(content, StrayLetter)]

    def remove(self, name: str) -> bool:
        """As `SqsQueue.remove_dead_letter`; `name` is a job's id or a letter's."""
        if (handles := self._handles.pop(name, None)) is not None:
            for handle in handles:
                self._delete(handle)
            return True
        with self._looking(most=_MOST_LETTERS_SEARCHED) as letters:
            found = [letter for letter in letters if letter.name == name]
            for letter in found:
                self._delete(letter.handle)
                letters.remove(letter)
        return bool(found)

    def _delete(self, handle: str) -> None:
        with translated(self._url), outdated_is_ignored():
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=handle)

    @contextmanager
    def _looking(self, *, most: int) -> Iterator[list[_Letter]]:
        """Dead letters, about so many at most, given back at the end unless they were taken out of the list."""
        letters: list[_Letter] = []
        try:
            self._read(letters, most)
            yield letters
        finally:
            self._give_back(letters)

    def _contents(self) -> list[CheckJob | StrayLetter]:
        with self._looking(most=MOST_LETTERS_READ) as letters:
            found = sorted(letters, key=lambda letter: letter.sent_at)
        self._handles = {}
        for letter in found:
            self._handles.setdefault(letter.name, []).append(letter.handle)
        return [letter.content for letter in found]

    def _read(self, letters: list[_Letter], most: int) -> None:
        """Add letters until there are no others, or enough."""
        # Nothing is hidden yet while the first ones are waited for.
        letters += self._receive(wait=self._wait)
        seen = {letter.message_id for letter in letters}
        empty = 0 if letters else _EMPTY_ANSWERS_AT_THE_END
        while empty < _EMPTY_ANSWERS_AT_THE_END and len(letters) < most:
            some = self._receive(wait=timedelta(0))
            letters += some
            if not seen.isdisjoint(letter.message_id for letter in some):
                return  # the first ones are back already
            seen.update(letter.message_id for letter in some)
            empty = 0 if some else empty + 1

    def _receive(self, *, wait: timedelta) -> list[_Letter]:
        with translated(self._url):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=MOST_AT_ONCE,
                WaitTimeSeconds=wait // timedelta(seconds=1),
                VisibilityTimeout=_LOOK_FOR // timedelta(seconds=1),
                AttributeNames=["SentTimestamp"],
            )
        return [_letter(message) for message in answer.get("Messages", ())]

    def _give_back(self, letters: Sequence[_Letter]) -> None:
        for start in range(0, len(letters), MOST_AT_ONCE):
            some = letters[start : start + MOST_AT_ONCE]
            entries = [
                {"Id": str(number), "ReceiptHandle": letter.handle, "VisibilityTimeout": 0}
                for number, letter in enumerate(some)
            ]
            with translated(self._url):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)


def _letter(message: Any) -> _Letter:
    content: CheckJob | StrayLetter
    try:
        content = read_message(message["Body"])
    except ValueError as problem:
        content = StrayLetter(
            letter_id=message["MessageId"], problem=str(problem), beginning=redacted_beginning(message["Body"])
        )
    return _Letter(content, message["MessageId"], message["ReceiptHandle"], int(message["Attributes"]["SentTimestamp"]))
