"""Mails as files in a folder: what a laptop and the demo use instead of a mail provider."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from linkwatch_pipeline.adapters.notify.message import to_message
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.transitions import escaped_id
from linkwatch_pipeline.ports import Mail


class FileNotifier:
    """Writes one `.eml` file per transition, whole or not at all. The provider's id is the file's name.

    Sending a transition again replaces its file: it has the same Message-ID, and a folder, unlike a mailbox, can say
    which mail it already has. So a repetition after a lost answer leaves one mail.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, mail: Mail) -> str:
        """Write the mail; its file name. Raises DeliveryError: not accepted while the folder cannot be written."""
        content = to_message(mail).as_bytes()
        name = f"{escaped_id(mail.transition_id)}.eml"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _write_whole(self._folder / name, content)
        except OSError as exc:
            raise DeliveryError(
                f"mail {name} cannot be written to the folder {self._folder}: {exc.strerror or exc}. "
                "Make the folder writable or free some space; the notice stays and is tried again.",
                DeliveryFailure.NOT_ACCEPTED,
            ) from exc
        return name


def _write_whole(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """A renamed file survives a power cut only when its folder is written too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
