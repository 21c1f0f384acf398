"""SQS's refusals in our words: what may pass, and what a person has to change first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from linkwatch_pipeline.adapters.aws_client import SETTINGS_ERRORS, in_words_of_settings, is_of_settings
from linkwatch_pipeline.domain.errors import QueueError, QueueUnusable

NOT_THERE = ("NonExistentQueue", "QueueDoesNotExist")
NOT_ALLOWED = ("AccessDenied", "AccessDeniedException")
_NOT_KNOWN = (
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
_OUTDATED = ("ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue", "InvalidIdFormat")


@contextmanager
def translated(url: str) -> Iterator[None]:
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
        return bool(error.response["Error"]["Code"].endswith((*NOT_THERE, *NOT_ALLOWED, *_NOT_KNOWN)))
    return isinstance(error, NoCredentialsError | NoRegionError)


@contextmanager
def outdated_is_ignored() -> Iterator[None]:
    """Of a receipt that is not the latest of its message: somebody else has it now."""
    try:
        yield
    except ClientError as exc:
        if not exc.response["Error"]["Code"].endswith(_OUTDATED):
            raise
