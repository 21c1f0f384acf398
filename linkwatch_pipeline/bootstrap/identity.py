"""Who we are: to hosts that we visit, and to other processes."""

from __future__ import annotations

import os
import secrets
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

DISTRIBUTION = "linkwatch-pipeline"


def version() -> str:
    """The installed version, `unknown` when linkwatch is run without being installed."""
    try:
        return installed_version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def user_agent(contact: str) -> str:
    """What hosts are told: our name, and where to complain if there is a contact."""
    return f"linkwatch/{version()} (+{contact})" if contact else f"linkwatch/{version()}"


def new_worker(kind: str) -> str:
    """A name for this process that no other has or had."""
    return f"{kind}-{os.getpid()}-{secrets.token_hex(6)}"
