"""For all tests: chance that is the same everywhere, and no verdict by the clock of a busy machine."""

from hypothesis import settings

settings.register_profile("linkwatch", deadline=None, derandomize=True)
settings.load_profile("linkwatch")
