"""For all tests: chance that is the same everywhere, no verdict by the clock of a busy machine, and the emulator."""

from hypothesis import settings

from linkwatch_pipeline_tests.cloud.ministack import ministack

__all__ = ["ministack"]  # a fixture for every room

settings.register_profile("linkwatch", deadline=None, derandomize=True)
settings.load_profile("linkwatch")
