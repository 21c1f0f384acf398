"""How long the fetches of tests wait: a machine that stalls for some seconds is no host that keeps silent.

A fixture home gives a look two seconds, which is right for a person at a lesson and too short for a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

from linkwatch_pipeline import status_bootstrap
from linkwatch_pipeline.adapters.fetch import backend
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy
from linkwatch_pipeline.bootstrap import homes
from linkwatch_pipeline.domain.hosts import LEASE_FOR, WORKER_LIFE
from linkwatch_pipeline.use_cases import check

# Within the life of a worker, which tests in virtual time rely on.
_IN_TESTS = WORKER_LIFE - timedelta(seconds=5)
# Within a host's lease, the longest for which nobody else thinks that a worker died.
_ALONE = LEASE_FOR - timedelta(seconds=5)


class PatientPolicy(FixturePolicy):
    """That of a fixture home, but for the time that a look may take."""

    deadline = _IN_TESTS


@contextmanager
def patient_homes() -> Iterator[None]:
    """Meanwhile fixture homes of this process are patient, and so is service status."""
    with (
        patch.object(homes, "FixturePolicy", PatientPolicy),
        patch.object(backend, "CONNECT_PATIENCE", _IN_TESTS),
        patch.object(status_bootstrap, "TOTAL_DEADLINE", _IN_TESTS),
    ):
        yield


@contextmanager
def as_released() -> Iterator[None]:
    """Meanwhile they are as impatient as everybody's: for a test of that."""
    with patch.object(homes, "FixturePolicy", FixturePolicy):
        yield


def be_patient() -> None:
    """For a process of a test's own, from now on: it waits for hosts that a test holds as long as it can."""
    FixturePolicy.deadline = backend.CONNECT_PATIENCE = _ALONE
    patch.object(check, "WORKER_LIFE", _ALONE).start()
