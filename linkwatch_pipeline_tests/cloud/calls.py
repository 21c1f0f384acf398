"""Calls to AWS, what may happen to them, and the answers that refuse them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_JSON = "application/x-amz-json-1.0"
_ERROR_TYPE = "com.amazonaws.dynamodb.v20120810#"


class Fault(StrEnum):
    """What happens to one call."""

    THROTTLED = "throttled"
    SERVER_ERROR = "server error"
    CONFLICT = "conflict"  # as DynamoDB says it: of a transaction, or of a single write that met one
    CUT_BEFORE = "cut before the effect"
    CUT_AFTER = "cut after the effect"
    SILENT_BEFORE = "no answer, no effect"
    SILENT_AFTER = "no answer after the effect"


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a service of AWS: the how many-eth since the proxy began or was told to count anew, from 0."""

    number: int
    operation: str
    body: Mapping[str, Any]
    service: str = "DynamoDB"

    @property
    def written_keys(self) -> frozenset[tuple[str, str]]:
        """The items that it writes, or insists on."""
        if self.operation == "TransactWriteItems":
            actions = (action for item in self.body["TransactItems"] for action in item.values())
            return frozenset(_key(action.get("Item") or action["Key"]) for action in actions)
        if self.operation in ("PutItem", "UpdateItem", "DeleteItem"):
            return frozenset([_key(self.body.get("Item") or self.body["Key"])])
        return frozenset()


Plan = Callable[[Call], Fault | None]


def no_fault(call: Call) -> Fault | None:
    return None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answers to one request."""

    status: int
    body: bytes
    headers: Mapping[str, str]


# Path, headers and body of a POST to its answer.
Service = Callable[[str, Mapping[str, str], bytes], Answer]


def refusal(fault: Fault, call: Call) -> Answer:
    status, document = _error_of(fault, call)
    return Answer(status, json.dumps(document).encode(), {"Content-Type": _JSON})


def _error_of(fault: Fault, call: Call) -> tuple[int, dict[str, Any]]:
    if fault is Fault.SERVER_ERROR:
        return 500, _error("InternalServerError", "injected")
    if fault is Fault.CONFLICT and call.operation == "TransactWriteItems":
        items: Sequence[Any] = call.body["TransactItems"]
        reasons = [{"Code": "TransactionConflict", "Message": "injected"}, *[{"Code": "None"}] * (len(items) - 1)]
        return 400, _error("TransactionCanceledException", "Transaction cancelled", CancellationReasons=reasons)
    if fault is Fault.CONFLICT and call.written_keys:
        return 400, _error("TransactionConflictException", "injected")
    if call.service != "DynamoDB":
        return 400, _error("ThrottlingException", "injected")
    return 400, _error("ProvisionedThroughputExceededException", "injected")


def _error(code: str, message: str, **further: Any) -> dict[str, Any]:
    return {"__type": _ERROR_TYPE + code, "message": message, "Message": message, **further}


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]
