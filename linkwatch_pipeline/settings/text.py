"""The text of a new `linkwatch.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from linkwatch_pipeline.settings.entries import Settings
from linkwatch_pipeline.settings.variables import ENV_PREFIX


def settings_text() -> str:
    """A new `linkwatch.toml`: every key explained, its default behind a comment sign."""
    parts = [
        f"# Settings of this linkwatch home. A variable {ENV_PREFIX}<KEY> wins over this file, a flag over both.\n"
        "# Each line shows the default; take the '# ' away to change it.\n"
    ]
    defaults = Settings()
    for key in fields(Settings):
        about = "\n".join(f"# {line}" for line in key.metadata["about"].splitlines())
        parts.append(f"{about}\n# {key.name} = {_as_toml(getattr(defaults, key.name))}\n")
    return "\n".join(parts)


def _as_toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{}"  # its only default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_as_toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
