"""For all tests: chance that is the same everywhere, no verdict by the clock of a busy machine, and the emulator."""

from hypothesis import settings

from linkwatch_pipeline_tests.cloud.ministack import ministack
from linkwatch_pipeline_tests.cloud.timed_sqs import timed_sqs

__all__ = ["ministack", "timed_sqs"]  # fixtures for every room

settings.register_profile("linkwatch", deadline=None, derandomize=True)
settings.load_profile("linkwatch")
