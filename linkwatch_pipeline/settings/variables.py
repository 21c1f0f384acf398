"""The names of variables in the environment that are ours."""

from __future__ import annotations

ENV_PREFIX = "LINKWATCH_"
HOME_VARIABLE = "LINKWATCH_HOME"
# Secrets are no settings: they stand in no file of ours and are never printed.
PASSWORD_VARIABLE = "LINKWATCH_SMTP_PASSWORD"
PASSWORD_FILE_VARIABLE = "LINKWATCH_SMTP_PASSWORD_FILE"
NO_SETTINGS = frozenset({HOME_VARIABLE, PASSWORD_VARIABLE, PASSWORD_FILE_VARIABLE})


def variable_of(key: str) -> str:
    """The variable that gives a setting."""
    return ENV_PREFIX + key.upper()
