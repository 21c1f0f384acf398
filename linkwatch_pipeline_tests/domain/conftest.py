"""Properties are judged by what they find: on a busy machine any example may take long."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("linkwatch", deadline=None)
settings.load_profile("linkwatch")
