"""What a person may choose: `linkwatch.toml`, then `LINKWATCH_*` variables, then flags; the later one wins.

Anything unknown or of the wrong kind is refused with its name, since a setting that is silently ignored is a trap.
"""

from __future__ import annotations

from linkwatch_pipeline.settings.entries import SMTP_PORTS, Settings
from linkwatch_pipeline.settings.load import load_settings
from linkwatch_pipeline.settings.smtp_password import load_smtp_password
from linkwatch_pipeline.settings.status import StatusSettings, load_status_settings
from linkwatch_pipeline.settings.text import settings_text
from linkwatch_pipeline.settings.variables import HOME_VARIABLE, PASSWORD_FILE_VARIABLE, PASSWORD_VARIABLE

__all__ = [
    "HOME_VARIABLE",
    "PASSWORD_FILE_VARIABLE",
    "PASSWORD_VARIABLE",
    "SMTP_PORTS",
    "Settings",
    "StatusSettings",
    "load_settings",
    "load_smtp_password",
    "load_status_settings",
    "settings_text",
]
