"""For all tests: chance that is the same everywhere, no verdict by the clock of a busy machine, a Ctrl-C that works."""

import signal

from hypothesis import settings

settings.register_profile("linkwatch", deadline=None, derandomize=True)
settings.load_profile("linkwatch")

# A shell starts what it puts into the background with SIGINT ignored; every program that a test starts would inherit
# that and never hear the Ctrl-C that the test sends.
signal.signal(signal.SIGINT, signal.default_int_handler)
