"""One CloudFormation stack: made, updated, made anew after a first attempt that failed, deleted; and why it failed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, WaiterError
from parameters import parameters_of
from refusals import NotFine, Refused, say

HERE = Path(__file__).resolve().parent
WAIT = {"Delay": 5, "MaxAttempts": 360}
# What a first attempt leaves that failed: nothing but its name, which stands in the way of the next.
DEAD = "ROLLBACK_COMPLETE"
# A parameter that no other template has: by it a stack is known as linkwatch's.
_MARKS = {"foundation": "MaxReceives", "application": "WeeklySchedule"}
# From these no deployment gets on by itself. What to do, after "stack NAME is STATUS: ".
MENDS = {
    "ROLLBACK_FAILED": "its first deployment failed and could not be taken back whole. Mend what its events say could "
    "not be deleted, run 'aws cloudformation delete-stack --stack-name {name}', then deploy again",
    "DELETE_FAILED": "it could not be deleted whole. Mend what its events say is in the way (or leave it, with "
    "--retain-resources), run 'aws cloudformation delete-stack --stack-name {name}', then deploy again",
    "REVIEW_IN_PROGRESS": "somebody made a change set for it and never carried it out. If it is not wanted, run "
    "'aws cloudformation delete-stack --stack-name {name}', then deploy again",
    "UPDATE_ROLLBACK_FAILED": "an update failed and could not be taken back. Mend what its events say is in the way, "
    "run 'aws cloudformation continue-update-rollback --stack-name {name}', then deploy again",
}


class Stack:
    """A stack of a name and of a template, there or not.

    Args: client: a boto3 CloudFormation client. patient: one that waits longer, for what changes a stack.
    """

    def __init__(self, client: Any, name: str, template: str, *, patient: Any) -> None:
        self.name = name
        self._client, self._patient, self._template = client, patient, template

    def status(self) -> str | None:
        """CloudFormation's word for how it is; None if there is no such stack."""
        described = self._described()
        return described["StackStatus"] if described is not None else None

    def stands(self) -> bool:
        """Whether it is there, and not only what a first attempt left that failed."""
        return self.status() not in (None, DEAD)

    def outputs(self) -> dict[str, str]:
        """What it tells; nothing if there is none."""
        described = self._described() or {}
        return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", ())}

    def values(self) -> dict[str, str]:
        """What its parameters were set to last, also by a first attempt that failed."""
        described = self._described() or {}
        return {each["ParameterKey"]: each.get("ParameterValue", "") for each in described.get("Parameters", ())}

    def check_ours(self) -> None:
        """Raise Refused for somebody else's stack of this name."""
        described = self._described()
        if described is None or described["StackStatus"] == "REVIEW_IN_PROGRESS":  # has no values yet
            return
        if _MARKS[self._template] not in self.values():
            raise Refused(
                f"the stack {self.name} that is there is none of linkwatch's ({self._template}). Take another NAME."
            )

    def check_usable(self) -> None:
        """Raise NotFine if it needs a person or time before it can be deployed; Refused if it is not ours."""
        self.check_ours()
        status = self.status() or ""
        if status in MENDS:
            raise NotFine(f"stack {self.name} is {status}: {MENDS[status].format(name=self.name)}.")
        if status.endswith("IN_PROGRESS"):
            raise NotFine(f"stack {self.name} is {status}: something else is at work on it. Wait, then repeat.")

    def bring(self, settings: Mapping[str, str]) -> None:
        """Make it or update it; what is not given keeps its value. CloudFormation takes back a change that fails."""
        known = parameters_of(self._template)
        values = {name: value for name, value in self.values().items() if name in known} | dict(settings)
        what = {
            "TemplateBody": (HERE / f"{self._template}.yaml").read_text(encoding="utf-8"),
            "Capabilities": ["CAPABILITY_IAM"],
            "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in sorted(values.items())],
        }
        if self.status() == DEAD:
            say(f"stack {self.name} is what a first deployment left that failed; it is deleted and made anew")
            self.delete()
        if self.status() is None:
            say(f"making stack {self.name}")
            self._carry_out(self._patient.create_stack, "stack_create_complete", what)
            return
        try:
            self._carry_out(self._patient.update_stack, "stack_update_complete", what, f"updating stack {self.name}")
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
            say(f"stack {self.name} is as it should be")

    def delete(self) -> None:
        say(f"deleting stack {self.name}")
        self._carry_out(self._patient.delete_stack, "stack_delete_complete", {})

    def _carry_out(self, call: Callable[..., Any], waiter: str, what: Mapping[str, Any], begun: str = "") -> None:
        """Call, and wait for the end. Args: begun: said when the call was taken."""
        token = f"linkwatch-{secrets.token_hex(8)}"  # by it the events of this operation are known
        before = self._described() or {}
        answer = call(StackName=self.name, ClientRequestToken=token, **what)
        stack_id = answer.get("StackId") or before["StackId"]  # a deleted stack is found by its id only
        if begun:
            say(begun)
        try:
            self._patient.get_waiter(waiter).wait(StackName=self.name, WaiterConfig=WAIT)
        except WaiterError as error:
            raise NotFine(self._failure(stack_id, token)) from error

    def _failure(self, stack_id: str, token: str) -> str:
        status = self.status() or "gone"
        if status.endswith("IN_PROGRESS"):
            return f"stack {self.name} is still {status} after {WAIT['Delay'] * WAIT['MaxAttempts'] // 60} minutes."
        then = MENDS.get(status, "mend that, then deploy again").format(name=self.name)
        return f"stack {self.name} is {status}: {self._first_failure(stack_id, token)}. {then[0].upper()}{then[1:]}."

    def _first_failure(self, stack_id: str, token: str) -> str:
        """Of this operation: a stack's history goes back over all that were there before, and lists what followed."""
        pages = self._client.get_paginator("describe_stack_events").paginate(StackName=stack_id)
        newest_first = [event for page in pages for event in page["StackEvents"]]
        ours = [event for event in reversed(newest_first) if event.get("ClientRequestToken") == token]
        failed = [event for event in ours if event["ResourceStatus"].endswith("FAILED")]
        # Some changes are refused before any resource is touched: then the stack's own events say why.
        said = failed or [event for event in ours if "ROLLBACK" in event["ResourceStatus"]]
        if not said:
            return "no resource says why"
        reason = said[0].get("ResourceStatusReason") or "no reason is given"
        return f"{said[0]['LogicalResourceId']}: {reason.rstrip('.')}"

    def _described(self) -> dict[str, Any] | None:
        try:
            found = self._client.describe_stacks(StackName=self.name)["Stacks"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            return None
        return next((each for each in found if each["StackStatus"] != "DELETE_COMPLETE"), None)
