"""Clients of AWS, with region, endpoint and credentials found the ordinary boto3 way, and what is wrong with these.

What a person wrote wrongly, into a variable or a file of boto3's, is found when a client is made or with its first
call, and comes as errors of many kinds: of botocore, of urllib3, and of Python itself.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, HTTPClientError

from linkwatch_pipeline.domain.errors import ConfigurationError

# Besides botocore's own: of a port or a number that is none, a file or a command that is not there.
SETTINGS_ERRORS = (ValueError, OSError)
_MEND = (
    "Look at region, endpoint, credentials and proxy where boto3 finds them: variables such as AWS_DEFAULT_REGION, "
    "AWS_PROFILE, AWS_ENDPOINT_URL and HTTPS_PROXY, and the files of AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE."
)


def make_client(service: str, *, config: Any, called: str, **where: Any) -> Any:
    """A client. Nothing is asked yet.

    Args:
        called: what people call the service.
        where: `region_name`, `endpoint_url`, where they are not to be looked up.
    Raises: ConfigurationError.
    """
    try:
        client = boto3.session.Session().client(service, config=config, **where)
        _check_endpoint(str(client.meta.endpoint_url))
    except (BotoCoreError, *SETTINGS_ERRORS) as error:
        raise ConfigurationError(in_words_of_settings(called, error)) from error
    return client


def is_of_settings(error: Exception) -> bool:
    """Whether a call failed since something that boto3 was given cannot be used: no repetition helps."""
    if isinstance(error, HTTPClientError) and type(error) is HTTPClientError:
        return isinstance(error.kwargs.get("error"), ValueError)  # what urllib3 could not read
    return isinstance(error, SETTINGS_ERRORS) and not isinstance(error, BotoCoreError)


def in_words_of_settings(called: str, error: Exception) -> str:
    """What a person is told of it."""
    words = str(error).removeprefix("An HTTP Client raised an unhandled exception: ").rstrip(".")
    if words.startswith("Invalid header value"):  # which would be quoted
        words = "a credential holds a character that no credential has"
    return f"{called} cannot be used: {words}. {_MEND}"


def _check_endpoint(url: str) -> None:
    """Raise ValueError for what would be found out with the first call only."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"the endpoint {url!r} is neither http nor https")
    try:
        parts.port  # noqa: B018
    except ValueError as error:
        raise ValueError(f"the endpoint {url!r} has no port that can be: {error}") from error
