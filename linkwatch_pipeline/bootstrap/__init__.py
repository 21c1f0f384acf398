"""Puts the parts together: a home and its settings become an `App`. The one room that knows everybody.

Parts are opened when they are first asked for, and heavy libraries are imported then: importing this module is cheap.
"""

from __future__ import annotations

from linkwatch_pipeline.bootstrap.app import App, outage_words
from linkwatch_pipeline.bootstrap.homes import (
    DEFAULT_HOME,
    build_app,
    build_app_from_environment,
    build_app_without_home,
    fetch_policy,
    make_home,
    scanning_policy,
)
from linkwatch_pipeline.bootstrap.identity import new_worker, user_agent, version
from linkwatch_pipeline.bootstrap.parts import SilentProgress

__all__ = [
    "DEFAULT_HOME",
    "App",
    "SilentProgress",
    "build_app",
    "build_app_from_environment",
    "build_app_without_home",
    "fetch_policy",
    "make_home",
    "new_worker",
    "outage_words",
    "scanning_policy",
    "user_agent",
    "version",
]
