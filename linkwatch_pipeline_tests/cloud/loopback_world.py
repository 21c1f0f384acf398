"""The Lambda functions as released, visiting a world on loopback: for emulators only, packed by no release.

The world's address map is `world.json` beside the packed code, or the file that LOOPBACK_WORLD names. What an emulator
leaves undone is done here, and so is not proved by it: putting the scheduled time into a schedule's input.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.fetch import backend
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy
from linkwatch_pipeline.bootstrap import App, build_app_without_home
from linkwatch_pipeline.domain.timestamps import format_seconds
from linkwatch_pipeline.entrypoints import aws_lambda

try:
    from address_map import AddressMap  # type: ignore[import-not-found]  # packed beside this file
except ModuleNotFoundError:
    from linkwatch_pipeline_tests.world.address_map import AddressMap

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"

Handler = Callable[[dict[str, Any], aws_lambda.Context], dict[str, Any]]


class _Patient(FixturePolicy):
    """A cold start, or a stall, on a busy machine takes longer than a fixture home waits."""

    deadline = timedelta(seconds=20)


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    backend.CONNECT_PATIENCE = _Patient.deadline


@cache
def app() -> App:
    """The parts of this process, in the world."""
    packed = Path(__file__).resolve().with_name("world.json")
    world = AddressMap.from_json(Path(os.environ.get("LOOPBACK_WORLD", packed)).read_text(encoding="utf-8"))
    released = build_app_without_home(env=os.environ)
    return replace(
        released,
        policy=_Patient(pair for pairs in world.hosts.values() for pair in pairs),
        resolver=world.resolver,
        ssl_context=world.ssl_context,
    )


def _in_this_world(handler: Handler) -> Handler:
    def call(event: dict[str, Any], context: aws_lambda.Context) -> dict[str, Any]:
        aws_lambda.app = app
        return handler(event, context)

    return call


@_in_this_world
def dispatch(event: dict[str, Any], context: aws_lambda.Context) -> dict[str, Any]:
    """As released, with the time that Amazon's scheduler would have put in."""
    if event.get("scheduled_time") == SCHEDULED_TIME:
        event = {**event, "scheduled_time": format_seconds(app().clock.now())}
    return aws_lambda.dispatch(event, context)


check = _in_this_world(aws_lambda.check)
notify = _in_this_world(aws_lambda.notify)
health = _in_this_world(aws_lambda.health)
mail_events = _in_this_world(aws_lambda.mail_events)


def where(event: dict[str, Any], context: aws_lambda.Context) -> dict[str, Any]:
    """Which code runs: for a proof that it is the packed one."""
    return {"aws_lambda": aws_lambda.__file__, "this": __file__}
