"""Mails through Amazon SES, API v2. The tag of a mail comes back in SES's events (`ses_events`).

SES knows no idempotency token, so a call is made once: a retry of the client's own could send a mail three times.
Which error proves what is from the service's model and from measurements; whatever is not listed is in doubt.
"""

from __future__ import annotations

from typing import Any

from linkwatch_pipeline.adapters.notify.message import address_spec, to_message
from linkwatch_pipeline.adapters.notify.provider_words import told_by_provider
from linkwatch_pipeline.domain.errors import ConfigurationError, DeliveryError, DeliveryFailure, MissingExtra
from linkwatch_pipeline.domain.transitions import escaped_id
from linkwatch_pipeline.ports import Mail

MAIL_TAG = "linkwatch-mail"
MAX_TAG_CHARACTERS = 256
CONNECT_SECONDS = 3
READ_SECONDS = 10
_TOO_MANY_REQUESTS = 429

_TRY_LATER = {
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "LimitExceededException",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "SendingPausedException",
}
_FOR_GOOD = {
    "BadRequestException",
    "MessageRejected",
    "MailFromDomainNotVerifiedException",
    "NotFoundException",
    "AccountSuspendedException",
    "AccessDenied",
    "AccessDeniedException",
    "SignatureDoesNotMatch",
}


class SesNotifier:
    """One call per mail. The provider's id is SES's message id.

    Args:
        client: a boto3 client of `sesv2` that never calls twice (`ses_client`).
        configuration_set: its name; tags reach events only through one.
    """

    def __init__(self, client: Any, *, configuration_set: str) -> None:
        self._client = client
        self._configuration_set = configuration_set

    def send(self, mail: Mail) -> str:
        """Hand over one mail; SES's message id. Raises DeliveryError."""
        request = self._request(mail)
        try:
            answer = self._client.send_email(**request)
        except Exception as exc:
            raise _translated(exc) from exc
        accepted = answer.get("MessageId")
        if not isinstance(accepted, str) or not accepted:  # a garbled answer is none, and no exception either
            raise DeliveryError("the answer of Amazon SES names no message", DeliveryFailure.UNKNOWN)
        return accepted

    def _request(self, mail: Mail) -> dict[str, Any]:
        tag = escaped_id(mail.transition_id)
        if len(tag) > MAX_TAG_CHARACTERS:
            raise DeliveryError(f"the mail's id {tag[:40]}... is too long for a tag", DeliveryFailure.PERMANENT)
        content = to_message(mail).as_bytes()
        return {
            "FromEmailAddress": address_spec(mail.sender),
            "Destination": {
                "ToAddresses": [address_spec(mail.recipient)],
                "CcAddresses": [address_spec(copy) for copy in mail.copies],
            },
            "Content": {"Raw": {"Data": content}},
            "ConfigurationSetName": self._configuration_set,
            "EmailTags": [{"Name": MAIL_TAG, "Value": tag}],
        }


def ses_client(*, region: str | None, endpoint_url: str | None = None, read_seconds: float = READ_SECONDS) -> Any:
    """A client that calls once and gives up soon.

    Args:
        region: None takes the environment's (AWS_REGION, AWS_DEFAULT_REGION or the shared configuration).
        endpoint_url, read_seconds: for tests; without a URL it is Amazon's.
    Raises: MissingExtra without boto3, ConfigurationError if nobody names a region, or what boto3 is given is wrong.
    """
    try:
        from botocore.config import Config

        from linkwatch_pipeline.adapters.aws_client import make_client
    except ImportError as exc:
        raise MissingExtra("aws", "mail through Amazon SES") from exc
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    try:
        return make_client("sesv2", region_name=region, endpoint_url=endpoint_url, config=config, called="Amazon SES")
    except ConfigurationError as exc:
        raise ConfigurationError(f"{exc} Set ses_region, if it is the region.") from exc


def _translated(exc: Exception) -> DeliveryError:
    words = told_by_provider(f"Amazon SES, {type(exc).__name__}: ", str(exc))
    return DeliveryError(words, _kind(exc))


def _kind(exc: Exception) -> DeliveryFailure:
    from botocore import exceptions as aws

    if isinstance(exc, aws.EndpointConnectionError | aws.ConnectTimeoutError):
        return DeliveryFailure.NOT_ACCEPTED
    if isinstance(exc, aws.ParamValidationError | aws.NoCredentialsError):
        return DeliveryFailure.PERMANENT
    if isinstance(exc, aws.ClientError):
        return _kind_of_answer(exc.response)
    return DeliveryFailure.UNKNOWN


def _kind_of_answer(response: Any) -> DeliveryFailure:
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = response.get("Error", {}).get("Code", "")
    if status >= 500:  # nothing says that such an answer means "not accepted"
        return DeliveryFailure.UNKNOWN
    if code in _TRY_LATER or status == _TOO_MANY_REQUESTS:
        return DeliveryFailure.NOT_ACCEPTED
    if code in _FOR_GOOD:
        return DeliveryFailure.PERMANENT
    return DeliveryFailure.UNKNOWN
