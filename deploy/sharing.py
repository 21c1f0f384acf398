"""What two sets of stacks in one account and region must not share: an identity of SES, and a namespace of numbers.

All else that they make is named after the stack or by AWS, which a test reads from the templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from refusals import Refused

# What whoever may not ask is told, by CloudFormation and by SES. Then nothing is known, and nothing is refused.
_MAY_NOT_ASK = ("AccessDenied", "AccessDeniedException")
_GONE = ("DELETE_COMPLETE", "ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS")

Values = Mapping[str, str]


@dataclass(frozen=True)
class Neighbour:
    """Another stack, and what its parameters are set to."""

    name: str
    values: Values


def neighbours(client: Any, name: str) -> Sequence[Neighbour]:
    """The stacks of this account and region but the one of that name; none if the caller may not list them."""
    try:
        pages = list(client.get_paginator("describe_stacks").paginate())
    except ClientError as error:
        if error.response["Error"]["Code"] not in _MAY_NOT_ASK:
            raise
        return ()
    return [
        Neighbour(
            each["StackName"],
            {value["ParameterKey"]: value.get("ParameterValue", "") for value in each.get("Parameters", ())},
        )
        for page in pages
        for each in page["Stacks"]
        if each["StackName"] != name and each["StackStatus"] not in _GONE
    ]


def made_identity(there: Values) -> str | None:
    """The identity that a stack made and would take along. Args: there: its values, none if it is not there."""
    return there["MailIdentity"] if there.get("MakeMailIdentity") == "yes" else None


def check_identity(mails: Any, there: Values, then: Values) -> None:
    """Raise Refused if the deployment would make an identity that SES has, or delete the one it sends as.

    CloudFormation would refuse the first half-way; an emulator lets it pass, and whoever is removed takes it along.

    Args:
        mails: a boto3 client of SES (v2).
        there, then: values of the application as it is, none if it is not there, and as they would be.
    """
    identity, made = then["MailIdentity"], made_identity(there)
    if then["MakeMailIdentity"] == "yes":
        if identity != made and _has(mails, identity):
            raise Refused(
                f"SES of this account has the identity {identity} already, and this stack did not make it. Add "
                "--set MakeMailIdentity=no: then the stack sends as it, and leaves it when it is removed."
            )
    elif identity == made:
        raise Refused(
            f"this stack made the identity {identity}. MakeMailIdentity=no would delete it, and no mail would go out. "
            "Leave MakeMailIdentity as it is."
        )


def check_nobody_sends_as(identity: str, others: Sequence[Neighbour]) -> None:
    """Raise Refused if an identity that is about to be deleted is what another set sends as, without one of its own."""
    using = {"MailIdentity": identity, "MakeMailIdentity": "no"}
    users = sorted(each.name for each in others if using.items() <= each.values.items())
    if users:
        raise Refused(
            f"this stack made the identity {identity} and would delete it, and {', '.join(users)} could send no mail "
            f"as it. Remove {', '.join(users)} first, or set another MailIdentity there."
        )


def check_namespace(namespace: str, others: Sequence[Neighbour]) -> None:
    """Raise Refused if the numbers of another stack go there: its alarms would take ours for its own."""
    users = sorted(each.name for each in others if each.values.get("MetricsNamespace") == namespace)
    if users:
        raise Refused(
            f"MetricsNamespace {namespace!r} is that of {', '.join(users)}: each would hide the other's silence. Add "
            "--set MetricsNamespace=... with a name of its own."
        )


def _has(mails: Any, identity: str) -> bool:
    try:
        mails.get_email_identity(EmailIdentity=identity)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NotFoundException", *_MAY_NOT_ASK):
            raise
        return False
    return True
