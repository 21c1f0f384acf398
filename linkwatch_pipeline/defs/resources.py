"""What assets and sensors are handed: the wired application of one home, and the lock under which checks run."""

from collections.abc import Iterator

import dagster as dg

from linkwatch_pipeline.bootstrap import App, build_app_from_environment


@dg.resource(description="The application on the home that LINKWATCH_HOME names (default ./.linkwatch).")
def app_resource(_context: dg.InitResourceContext) -> Iterator[App]:
    app = build_app_from_environment()
    try:
        yield app
    finally:
        app.close()


@dg.resource(
    required_resource_keys={"app"},
    description="Held while a run's checks go on: a second run in the same home fails at once and does nothing.",
)
def run_lock_resource(context: dg.InitResourceContext) -> Iterator[str]:
    app: App = context.resources.app
    with app.sole_runner() as worker:
        yield worker
