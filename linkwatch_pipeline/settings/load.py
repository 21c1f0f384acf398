"""Gathers the settings of a home from their sources and checks that they fit together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.settings.entries import KINDS, SHORTEST_COOLDOWN_SECONDS, Settings
from linkwatch_pipeline.settings.sources import from_env, from_file, from_flags
from linkwatch_pipeline.settings.values import is_loopback


def load_settings(
    file: Path, *, env: Mapping[str, str], flags: Mapping[str, object] | None = None, fixture: bool = False
) -> Settings:
    """Gather and check the settings of a home.

    Args:
        file: the home's `linkwatch.toml`; nothing is chosen there if it does not exist.
        env: only names that begin with `LINKWATCH_` are looked at.
        flags: by setting name; None means that the flag was not given.
        fixture: whether the home is a fixture home, where the cooldown may be shorter.
    Raises: ConfigurationError, naming the key and where it stands.
    """
    chosen: dict[str, Any] = {}
    for source, key, value in (*from_file(file), *from_env(env), *from_flags(flags or {})):
        chosen[key] = _checked(source, key, value)
    settings = Settings(**chosen)
    for check in (_check_cooldown, _check_aws_settings, _check_mail_settings, _check_webhook):
        check(settings, fixture=fixture)
    return settings


def _checked(source: str, key: str, value: object) -> object:
    try:
        return KINDS[key].check(value)
    except InvalidInput as exc:
        raise ConfigurationError(f"{source}: {exc.problem}. {exc.mend}") from exc
    except ValueError as exc:
        raise ConfigurationError(f"{source} must be {exc}, not {value!r}.") from exc


def _check_cooldown(settings: Settings, *, fixture: bool) -> None:
    if settings.cooldown_seconds < SHORTEST_COOLDOWN_SECONDS and not fixture:
        raise ConfigurationError(
            f"cooldown_seconds is {settings.cooldown_seconds:g}; hosts get at least {SHORTEST_COOLDOWN_SECONDS:g} s "
            "of rest after each visit, except in a fixture home."
        )


def _check_aws_settings(settings: Settings, *, fixture: bool) -> None:
    """Whether the profile has what it needs."""
    if settings.profile != "aws":
        return
    if fixture:
        raise ConfigurationError('profile is "aws", but a fixture home keeps everything to itself; take it out.')
    if not settings.table:
        raise ConfigurationError(
            "the profile 'aws' needs the name of a DynamoDB table: set table, or LINKWATCH_TABLE, to what the stack "
            "tells as TableName."
        )
    _check_queues(settings)


def _check_queues(settings: Settings) -> None:
    """A queue and its dead letters are in one account and region, so one name is one queue, however its URL is spelled.

    Whoever throws dead letters away would throw away work that waits.
    """
    if settings.queue_url and _queue_name(settings.queue_url) == _queue_name(settings.dead_letter_queue_url):
        raise ConfigurationError(
            "dead_letter_queue_url and queue_url name the same queue, "
            f"{_queue_name(settings.queue_url)!r}; set dead_letter_queue_url, or LINKWATCH_DEAD_LETTER_QUEUE_URL, to "
            "what the stack tells as DeadLetterQueueUrl."
        )


def _queue_name(url: str) -> str:
    return url.rpartition("/")[2]


def _check_mail_settings(settings: Settings, *, fixture: bool) -> None:
    """Whether the mail settings fit together."""
    if settings.mail == "files":
        return
    if fixture:
        raise ConfigurationError(f'mail is "{settings.mail}", but a fixture home mails only to files; take it out.')
    needed = {"smtp": "smtp_host", "ses": "ses_configuration_set"}[settings.mail]
    if not getattr(settings, needed):
        raise ConfigurationError(f'mail is "{settings.mail}", which needs {needed}; set it, or set mail = "files".')
    if settings.mail_from == Settings().mail_from:
        raise ConfigurationError(
            f'mail is "{settings.mail}", so mails need a real sender; set mail_from to an address that may send.'
        )
    if settings.mail == "smtp" and settings.smtp_username and settings.smtp_security == "none":
        raise ConfigurationError(
            'smtp_username is set, but smtp_security is "none", which would show the password to the network; '
            'set smtp_security to "starttls" or "tls".'
        )


def _check_webhook(settings: Settings, *, fixture: bool) -> None:
    if fixture and settings.ops_webhook and not is_loopback(settings.ops_webhook):
        raise ConfigurationError(
            "ops_webhook leads to another machine, but a fixture home alarms nobody out there; take it out."
        )
