"""What can go wrong with linkwatch itself. A broken link is a value, never an exception.

LinkwatchError
├── InvalidInput            a value somebody gave is refused; names the field and the mend     (exit 2)
├── ConfigurationError      settings, a home or an extra is not usable                         (exit 2)
│   └── MissingExtra        an optional part is not installed
├── ConflictingContent      an identity is reused with other content; nothing was written      (exit 2)
├── NotFound                no link, owner or run of that name                                 (exit 2)
├── AlreadyRunning          another process holds the home's run lock                          (exit 1)
├── StoreError              the store cannot serve
│   ├── StaleWrite          the item changed since it was read: reread and decide again
│   ├── StoreContended      what is written contradicts what is there, however often it is read again
│   ├── StoreUnavailable    busy, full, unwritable: the same call may work later
│   │   └── OutOfTime       waiting for the store used up the time of this call
│   └── StoreUnusable       corrupt, or written by a newer linkwatch
│       ├── DamagedRecord   one record cannot be read; the others can
│       └── ImportUnfinished  a part of a history is all that is there
├── QueueError              the queue cannot serve
│   ├── QueueUnusable       it is not there, or refuses us: waiting does not help
│   ├── DeadLettersElsewhere  its dead letters do not go to the queue that is named for them
│   └── DeadLettersLost     they go to that queue, which is not there any more
├── DeliveryError           a mail was not accepted; `kind` says what is known
└── AlarmNotTaken           a destination of alarms did not take one: it is offered again
"""

from __future__ import annotations

from enum import StrEnum


class LinkwatchError(Exception):
    """Base of everything that linkwatch raises on purpose."""


class InvalidInput(LinkwatchError):
    """A value somebody gave is refused.

    Args:
        field: the option, column or setting as the person knows it.
        problem: what is wrong with the value.
        mend: what to write instead.
    """

    def __init__(self, field: str, problem: str, mend: str) -> None:
        super().__init__(f"{field}: {problem}. {mend}")
        self.field = field
        self.problem = problem
        self.mend = mend


class ConfigurationError(LinkwatchError):
    """Settings, a home or the environment cannot be used as they are."""


class MissingExtra(ConfigurationError):
    """An optional part of linkwatch is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the extra '{extra}', which is not installed. "
            f"Install it with: pip install 'linkwatch-pipeline[{extra}]'"
        )
        self.extra = extra


class ConflictingContent(LinkwatchError):
    """A job id, sequence, link id or address is reused with other content; nothing was written."""


class NotFound(LinkwatchError):
    """There is no link, owner, run or notice of that name."""


class AlreadyRunning(LinkwatchError):
    """Another process is running checks in this home."""


class StoreError(LinkwatchError):
    """The store cannot serve."""


class StaleWrite(StoreError):
    """The item changed since it was read: reread and decide again."""


class StoreContended(StoreError):
    """What is to be written contradicts what is there, each time it is read anew. The store serves others meanwhile."""


class StoreUnavailable(StoreError):
    """Busy, full or unwritable: nothing was written, and the same call may work later."""


class OutOfTime(StoreUnavailable):
    """The time of this call is used up, since the store was slow: nothing more is begun, and it may be made again."""


class StoreUnusable(StoreError):
    """Corrupt, or written by a newer linkwatch: a person has to look."""


class DamagedRecord(StoreUnusable):
    """One record cannot be read: a person has to mend it. Nothing is wrong with the others.

    Args:
        record: where it stands, as a person looks for it.
        url: its URL, of a record that has one, if that much can be read.
        key: the id of a run, the target of a mute, `link:sequence` of an observation, the id of a transition, if that
            much can be read.
    """

    def __init__(self, message: str, *, record: str, url: str | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.record = record
        self.url = url
        self.key = key


class ImportUnfinished(StoreUnusable):
    """A part of a history is all that is there: it can be read, and neither changed nor taken for the whole."""

    def __init__(self) -> None:
        super().__init__(
            "an import of a history into this store is unfinished, and a part of the history is missing. "
            "Run 'linkwatch import-history' again with the same file."
        )


class QueueError(LinkwatchError):
    """The queue cannot serve."""


class QueueUnusable(QueueError):
    """The queue is not there, or refuses us: a person has to look, and waiting does not help."""


class DeadLettersElsewhere(QueueError):
    """The dead letters of the queue do not go to the queue that is named for them."""


class DeadLettersLost(QueueError):
    """The dead letters of the queue are to go to one that is not there, so that nobody sees what is given up."""


class DeliveryFailure(StrEnum):
    """What is known about a mail that was not reported as accepted."""

    NOT_ACCEPTED = "not_accepted"  # certainly not accepted: try later
    PERMANENT = "permanent"  # refused for good: a person has to look
    UNKNOWN = "unknown"  # may or may not have been accepted


class DeliveryError(LinkwatchError):
    """A mail was not reported as accepted."""

    def __init__(self, message: str, kind: DeliveryFailure) -> None:
        super().__init__(message)
        self.kind = kind


class AlarmNotTaken(LinkwatchError):
    """A destination of alarms did not take one. It is offered again at the next look."""
