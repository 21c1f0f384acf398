"""For all tests: chance that is the same everywhere, no verdict by the clock of a busy machine, and the emulator."""

from hypothesis import settings

from linkwatch_pipeline_tests.cloud.ministack import ministack
from linkwatch_pipeline_tests.services.postgresql import postgres
from linkwatch_pipeline_tests.services.team import team
from linkwatch_pipeline_tests.services.valkey import valkey, valkey_of_session

__all__ = ["ministack", "postgres", "team", "valkey", "valkey_of_session"]  # fixtures for every room

settings.register_profile("linkwatch", deadline=None, derandomize=True)
settings.load_profile("linkwatch")
