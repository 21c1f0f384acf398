"""The password for the mail server. It is no setting: it comes from a variable, or from a file that one names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.settings.variables import PASSWORD_FILE_VARIABLE, PASSWORD_VARIABLE

MAX_BYTES = 4096


def load_smtp_password(env: Mapping[str, str]) -> str:
    """The password for the mail server: a variable's, or the first line of the file that a variable names; or "".

    Raises: ConfigurationError if both are set, or the file cannot be read or says nothing.
    """
    password, file = env.get(PASSWORD_VARIABLE, ""), env.get(PASSWORD_FILE_VARIABLE, "")
    if password and file:
        raise ConfigurationError(f"{PASSWORD_VARIABLE} and {PASSWORD_FILE_VARIABLE} are both set; keep one of them.")
    if not file:
        return _plain_password(PASSWORD_VARIABLE, password)
    try:
        with Path(file).open("rb") as opened:  # perhaps a pipe
            line = opened.readline(MAX_BYTES + 1)
        if len(line) > MAX_BYTES:
            raise ConfigurationError(
                f"{PASSWORD_FILE_VARIABLE}: the first line of {file} is longer than {MAX_BYTES} bytes."
            )
        password = line.decode("utf-8-sig").removesuffix("\n").rstrip("\r")
    except OSError as exc:
        raise ConfigurationError(f"{PASSWORD_FILE_VARIABLE}: {file} cannot be read: {exc.strerror}.") from exc
    except ValueError:
        raise ConfigurationError(f"{PASSWORD_FILE_VARIABLE}: {file} is not text in UTF-8.") from None
    if not password:
        raise ConfigurationError(
            f"{PASSWORD_FILE_VARIABLE}: the first line of {file} is empty; write the password there."
        )
    return password


def _plain_password(source: str, password: str) -> str:
    """Refused here, since what the mail client would say of it quotes a part of it."""
    if not password.isascii():
        raise ConfigurationError(
            f"{source}: the password holds characters beyond ASCII, which mail servers do not take."
        )
    return password
