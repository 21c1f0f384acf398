"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, pieces: Iterable[str | bytes]) -> None:
    """Write a file, and only then let it take the place of an earlier one; its folders are made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with open(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece if isinstance(piece, bytes) else piece.encode("utf-8"))
        os.chmod(scratch, 0o666 & ~_umask())
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def _umask() -> int:
    """What new files are not to allow: a temporary file allows its owner alone."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
