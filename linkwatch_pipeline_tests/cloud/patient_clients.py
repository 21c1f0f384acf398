"""Clients of AWS that take no stall of this machine for a silent service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import botocore.session
import pytest
from botocore.config import Config

PATIENCE = Config(connect_timeout=60, read_timeout=60)


@contextmanager
def patient_clients() -> Iterator[None]:
    """Until the block ends, every new client of this process waits a minute for an answer, whatever it was told."""
    create = botocore.session.Session.create_client

    def create_patient(session: Any, *args: Any, config: Config | None = None, **options: Any) -> Any:
        return create(session, *args, config=(config or Config()).merge(PATIENCE), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session.Session, "create_client", create_patient)
        yield
