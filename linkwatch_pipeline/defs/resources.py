"""What assets and sensors are handed: the wired application of one home, and the lock under which checks run.

DynamoDB, SQS, SES and CloudWatch are parts of the application, built by `bootstrap` from settings, as they are for
the commands and the Lambda functions: there is one way to make a client, and no resource beside it.
"""

from collections.abc import Iterator

import dagster as dg

from linkwatch_pipeline.bootstrap import App, build_app_from_environment
from linkwatch_pipeline.domain.timestamps import parse_week

PARTITION_TAG = "dagster/partition"  # Dagster's own; its constant is not public


@dg.resource(description="The application on the home that LINKWATCH_HOME names (default ./.linkwatch).")
def app_resource(_context: dg.InitResourceContext) -> Iterator[App]:
    app = build_app_from_environment()
    try:
        yield app
    finally:
        app.close()


@dg.resource(
    required_resource_keys={"app"},
    description="Held while a run's checks go on: a second run in the same home fails at once and does nothing. "
    "In the profile aws nothing is held: the store keeps workers apart.",
)
def run_lock_resource(context: dg.InitResourceContext) -> Iterator[str]:
    app: App = context.resources.app
    # Hosts that a dead predecessor was visiting rest from now on, and in a story home `now` is the week's.
    week = context.run.tags.get(PARTITION_TAG) if context.run is not None else None
    with (app.in_week(parse_week(week)) if week is not None else app).sole_runner() as worker:
        yield worker
