"""One process at a time runs checks in a home: a lock that dies with its holder, and names its dead predecessor."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from linkwatch_pipeline.domain.errors import AlreadyRunning, ConfigurationError


@contextmanager
def hold_run_lock(path: Path, *, worker: str, bury: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock.

    The kernel frees the lock when the process ends, however it ends; a name left in the file tells of a death.

    Args: bury: called with the worker that held it before if it died without letting go. Only then is its name
        replaced, so whoever dies in the middle of a burial leaves it to the next one.
    Raises: AlreadyRunning, ConfigurationError if the file cannot be used.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(f"the run lock {path} cannot be opened: {error.strerror}") from error
    try:
        _lock(descriptor, path)
        predecessor = os.read(descriptor, 4096).decode(errors="replace").strip()
        if predecessor:
            bury(predecessor)
        _write(descriptor, worker)
        yield
        _write(descriptor, "")
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise AlreadyRunning(
                f"another process is running checks in {path.parent}. Let it finish, or stop it; this one did nothing."
            ) from None
        raise ConfigurationError(f"the run lock {path} cannot be locked: {error.strerror}") from error


def _write(descriptor: int, worker: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, worker.encode(), 0)
    os.fsync(descriptor)
