"""Which of DynamoDB's errors pass by themselves, how long to wait for that, and what the others mean in our words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
)

from linkwatch_pipeline.adapters.aws_client import in_words_of_settings, is_of_settings
from linkwatch_pipeline.domain.errors import OutOfTime, StoreContended, StoreError, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.hosts import Chance
from linkwatch_pipeline.ports import Clock

T = TypeVar("T")

# Not made, cut, or silent; whether the request was carried out is not known.
_CONNECTION_ERRORS = (ConnectionError, HTTPClientError)

FIRST_WAIT = timedelta(milliseconds=50)
LONGEST_WAIT = timedelta(seconds=2)
BUDGET = timedelta(seconds=12)  # of one call with all its repetitions; a worker holds its lease for 60 s
CONDITION_FAILED = "ConditionalCheckFailed"
_PASSING = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
# Reasons of a cancelled transaction that say nothing about the items' content.
_PASSING_REASONS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


class Conflict(Exception):
    """A condition did not hold: somebody changed what was read. `failed` are the positions in the transaction."""

    def __init__(self, failed: tuple[int, ...] = (0,)) -> None:
        super().__init__(f"changed meanwhile: {failed}")
        self.failed = failed


class Unfinished(Conflict):
    """A batch was carried out in part."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How repetitions are spaced: full jitter below 50 ms x 2^n, at most 2 s, until the budget is spent.

    Args:
        wait: blocks for a while.
        until: the moment, in the clock's monotonic seconds, after which no request is begun.
    """

    clock: Clock
    chance: Chance
    wait: Callable[[timedelta], None]
    budget: timedelta = BUDGET
    until: float = math.inf

    def call(self, request: Callable[[], T]) -> T:
        """Send one request again and again while what hinders it may pass. It has to bear being sent twice.

        Raises: Conflict, StoreError.
        """
        return self._repeat(request, _passes)

    def until_undisturbed(self, attempt: Callable[[], T]) -> T:
        """Read, decide and write anew until nobody changed meanwhile what was read.

        Raises: StoreContended if that does not end, StoreUnavailable.
        """
        return self._repeat(attempt, lambda error: isinstance(error, Conflict))

    def _repeat(self, attempt: Callable[[], T], passes: Callable[[Exception], bool]) -> T:
        began = self.clock.monotonic()
        if began >= self.until:
            raise OutOfTime("the time of this call is used up; nothing more is asked of the table.")
        ends = min(began + self.budget.total_seconds(), self.until)
        ceiling = FIRST_WAIT
        while True:
            try:
                return attempt()
            except Exception as error:
                if not passes(error):
                    raise
                pause = ceiling * self.chance.random()
                if self.clock.monotonic() + pause.total_seconds() > ends:
                    raise _given_up(error) from error
            self.wait(pause)
            ceiling = min(ceiling * 2, LONGEST_WAIT)


def _passes(error: Exception) -> bool:
    """Whether the same request may work later. What never will is raised in our words."""
    if isinstance(error, ClientError):
        if _may_pass(error):
            return True
        raise translated(error) from error
    if isinstance(error, NoCredentialsError | NoRegionError):
        raise StoreUnusable(f"{str(error).rstrip('.')}. Give them the way boto3 looks for them.") from error
    if is_of_settings(error):
        raise StoreUnusable(in_words_of_settings("DynamoDB", error)) from error
    if isinstance(error, _CONNECTION_ERRORS):
        return True
    if isinstance(error, BotoCoreError):
        raise StoreError(f"DynamoDB could not be asked: {error}") from error
    return False


def _may_pass(error: ClientError) -> bool:
    code, status = _code(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code == "TransactionCanceledException":
        reasons = set(_reasons(error)) - {"None"}
        return bool(reasons) and reasons <= _PASSING_REASONS
    return code in _PASSING or status == 429 or status >= 500


def translated(error: ClientError) -> Exception:
    """What an error that will not pass means."""
    code = _code(error)
    if code == "ConditionalCheckFailedException":
        return Conflict()
    if code == "TransactionCanceledException":
        reasons = _reasons(error)
        if CONDITION_FAILED in reasons and set(reasons) <= {CONDITION_FAILED, "None", *_PASSING_REASONS}:
            return Conflict(tuple(place for place, reason in enumerate(reasons) if reason == CONDITION_FAILED))
        return StoreError(f"DynamoDB refused a transaction ({', '.join(reasons)}); nothing was written.")
    message = error.response.get("Error", {}).get("Message") or code
    if code == "ResourceNotFoundException":
        return StoreUnusable(f"the DynamoDB table is not there ({message}). Look at its name, region and account.")
    if code in ("AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException"):
        return StoreUnusable(f"DynamoDB refuses us ({code}: {message}). Look at the credentials and the role.")
    return StoreError(f"DynamoDB refused a request ({code}: {message}).")


def _given_up(error: Exception) -> StoreError:
    if isinstance(error, Conflict) and not isinstance(error, Unfinished):
        # No outage: items that contradict each other, as where one was deleted by hand, would do so for ever.
        return StoreContended(
            "others kept changing the same items, or these contradict each other since one was deleted or changed by "
            "hand; nothing was written. Repeat it; if it fails again, put the table back from a point-in-time restore."
        )
    return StoreUnavailable(
        f"DynamoDB does not serve ({error}). Whether the last request was carried out is not known. Repeat it: "
        "what was done already is recognised."
    )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _reasons(error: ClientError) -> list[str]:
    reasons: list[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    return [str(reason.get("Code", "None")) for reason in reasons]
