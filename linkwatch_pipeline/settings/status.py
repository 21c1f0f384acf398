"""Where service status is kept, and what its team may choose: variables of the environment alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.links import MAX_CONFIRM

_SHORTEST_KEEP_HOURS = 24  # what a reader shows
_MAX_KEEP_HOURS = 24 * 3660
_VARIABLES: Mapping[str, str] = {
    "DATABASE_URL": "Give postgresql://USER:PASSWORD@HOST:5432/NAME, or name a secret in DATABASE_URL_SECRET_ARN.",
    "REDIS_URL": "Give it as redis://HOST:6379/0, or rediss:// for TLS.",
    "SQS_QUEUE_URL": "Give the URL of the queue between monitor and processor.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSettings:
    """Where service status is kept, by the original's own variables, and what its team may choose.

    Exactly one of `database_url` and `database_url_secret_arn` is set. `sqs_queue_url` empty: a queue in memory.
    `root_certificates` is the file of authorities for a database URL that names none (libpq's PGSSLROOTCERT).
    `keep_hours` None: rows are never deleted. Nothing here is shown: the URLs hold passwords.
    """

    database_url: str = field(default="", repr=False)
    database_url_secret_arn: str = ""
    root_certificates: str | None = None
    redis_url: str = field(default="", repr=False)
    sqs_queue_url: str = ""
    confirm: int = 1
    notices: bool = False
    keep_hours: int | None = None


def load_status_settings(env: Mapping[str, str], *, needs: Sequence[str] = ()) -> StatusSettings:
    """Gather and check the settings of service status.

    Args: needs: variables that the caller cannot do without; `DATABASE_URL` may be given as DATABASE_URL_SECRET_ARN.
    Raises: ConfigurationError, naming the variable.
    """
    given = {name: value.strip() for name, value in env.items() if value.strip()}
    if "DATABASE_URL" in given and "DATABASE_URL_SECRET_ARN" in given:
        raise ConfigurationError("DATABASE_URL and DATABASE_URL_SECRET_ARN are both set; leave one of them out.")
    for name in needs:
        if name not in given and not (name == "DATABASE_URL" and "DATABASE_URL_SECRET_ARN" in given):
            raise ConfigurationError(f"{name} is not set. {_VARIABLES[name]}")
    return StatusSettings(
        database_url=given.get("DATABASE_URL", ""),
        database_url_secret_arn=given.get("DATABASE_URL_SECRET_ARN", ""),
        root_certificates=given.get("PGSSLROOTCERT"),
        redis_url=given.get("REDIS_URL", ""),
        sqs_queue_url=given.get("SQS_QUEUE_URL", ""),
        confirm=_whole_number(given, "STATUS_CONFIRM", 1, MAX_CONFIRM) or 1,
        notices=_switch(given, "STATUS_NOTICES"),
        keep_hours=_whole_number(given, "STATUS_KEEP_HOURS", _SHORTEST_KEEP_HOURS, _MAX_KEEP_HOURS),
    )


def _whole_number(given: Mapping[str, str], name: str, lowest: int, highest: int) -> int | None:
    if name not in given:
        return None
    try:
        number = int(given[name])
    except ValueError:
        number = lowest - 1
    if not lowest <= number <= highest:
        raise ConfigurationError(f"{name} must be a whole number from {lowest} to {highest}, not {given[name]!r}.")
    return number


def _switch(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "off").lower()
    if value not in ("on", "off"):
        raise ConfigurationError(f"{name} must be on or off, not {given[name]!r}.")
    return value == "on"
