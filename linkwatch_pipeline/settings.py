"""What a person may choose: `linkwatch.toml`, then `LINKWATCH_*` variables, then flags; the later one wins.

Anything unknown or of the wrong kind is refused with its name, since a setting that is silently ignored is a trap.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from linkwatch_pipeline.domain.allowances import MAX_AGREED_WITH, MAX_VISITS, Allowance
from linkwatch_pipeline.domain.errors import ConfigurationError, InvalidInput
from linkwatch_pipeline.domain.hosts import COOLDOWN
from linkwatch_pipeline.domain.links import MAX_CONFIRM, check_address, check_confirm, check_link_id
from linkwatch_pipeline.domain.urls import RefusedUrl, host_key

SETTINGS_FILE = "linkwatch.toml"
ENV_PREFIX = "LINKWATCH_"
HOME_VARIABLE = "LINKWATCH_HOME"
PROFILES = ("local", "aws")
MAILS = ("files", "smtp", "ses")
SMTP_PORTS = {"starttls": 587, "tls": 465, "none": 25}
# Secrets are no settings: they stand in no file of ours and are never printed.
PASSWORD_VARIABLE = "LINKWATCH_SMTP_PASSWORD"
PASSWORD_FILE_VARIABLE = "LINKWATCH_SMTP_PASSWORD_FILE"
MAX_CONCURRENCY = 200
SHORTEST_KEEP_HOURS = 24  # what a reader shows
MAX_KEEP_HOURS = 24 * 3660
STATUS_VARIABLES: Mapping[str, str] = {
    "DATABASE_URL": "Give postgresql://USER:PASSWORD@HOST:5432/NAME, or name a secret in DATABASE_URL_SECRET_ARN.",
    "REDIS_URL": "Give it as redis://HOST:6379/0, or rediss:// for TLS.",
    "SQS_QUEUE_URL": "Give the URL of the queue between monitor and processor.",
}
MAX_BATCHES = 1000
MAX_COOLDOWN_SECONDS = 900.0
_NO_SETTINGS = frozenset({HOME_VARIABLE, PASSWORD_VARIABLE, PASSWORD_FILE_VARIABLE})
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9_=.-]+)*|")
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}|")
_SHORTEST_COOLDOWN_SECONDS = COOLDOWN.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All choices, checked. `allowed_hosts` empty means every host, `smtp_port` 0 the usual one."""

    contact: str = ""
    confirm: int = 1
    concurrency: int = 20
    batches: int = 8
    cooldown_seconds: float = _SHORTEST_COOLDOWN_SECONDS
    mail: str = "files"
    mail_from: str = "linkwatch@localhost.invalid"
    smtp_host: str = ""
    smtp_port: int = 0
    smtp_security: str = "starttls"
    smtp_username: str = ""
    ses_region: str = ""
    ses_configuration_set: str = ""
    profile: str = "local"
    allowed_hosts: tuple[str, ...] = ()
    allowances: Mapping[str, Allowance] = field(default_factory=dict)
    breaker: bool = True
    breaker_hosts: int = 5
    breaker_hosts_percent: int = 10
    breaker_links: int = 20
    breaker_links_percent: int = 25
    canaries: tuple[str, ...] = ()
    ops_webhook: str = ""
    ops_file: str = "alarms.jsonl"
    table: str = ""
    queue_url: str = ""
    dead_letter_queue_url: str = ""
    metrics_namespace: str = "linkwatch"
    warehouse_bucket: str = ""
    allow_endpoint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """How one setting is read from a variable's text and checked; `check` raises ValueError saying what it must be."""

    read: Callable[[str], object]
    check: Callable[[Any], object]
    about: str


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
            raise ConfigurationError(f"{name} is not set. {STATUS_VARIABLES[name]}")
    return StatusSettings(
        database_url=given.get("DATABASE_URL", ""),
        database_url_secret_arn=given.get("DATABASE_URL_SECRET_ARN", ""),
        root_certificates=given.get("PGSSLROOTCERT"),
        redis_url=given.get("REDIS_URL", ""),
        sqs_queue_url=given.get("SQS_QUEUE_URL", ""),
        confirm=_status_number(given, "STATUS_CONFIRM", 1, MAX_CONFIRM) or 1,
        notices=_switch(given, "STATUS_NOTICES"),
        keep_hours=_status_number(given, "STATUS_KEEP_HOURS", SHORTEST_KEEP_HOURS, MAX_KEEP_HOURS),
    )


def _status_number(given: Mapping[str, str], name: str, lowest: int, highest: int) -> int | None:
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
    for source, key, value in (*_from_file(file), *_from_env(env), *_from_flags(flags or {})):
        chosen[key] = _checked(source, key, value)
    settings = Settings(**chosen)
    if settings.cooldown_seconds < _SHORTEST_COOLDOWN_SECONDS and not fixture:
        raise ConfigurationError(
            f"cooldown_seconds is {settings.cooldown_seconds:g}; hosts get at least {_SHORTEST_COOLDOWN_SECONDS:g} s "
            "of rest after each visit, except in a fixture home."
        )
    _check_aws_settings(settings, fixture=fixture)
    _check_mail_settings(settings, fixture=fixture)
    if fixture and settings.ops_webhook and not _is_loopback(settings.ops_webhook):
        raise ConfigurationError(
            "ops_webhook leads to another machine, but a fixture home alarms nobody out there; take it out."
        )
    return settings


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
        password = Path(file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except OSError as exc:
        raise ConfigurationError(f"{PASSWORD_FILE_VARIABLE}: {file} cannot be read: {exc.strerror}.") from exc
    except ValueError:
        raise ConfigurationError(f"{PASSWORD_FILE_VARIABLE}: {file} is not text in UTF-8.") from None
    if not password:
        raise ConfigurationError(
            f"{PASSWORD_FILE_VARIABLE}: the first line of {file} is empty; write the password there."
        )
    return password


def settings_text() -> str:
    """A new `linkwatch.toml`: every key explained, its default behind a comment sign."""
    parts = [
        f"# Settings of this linkwatch home. A variable {ENV_PREFIX}<KEY> wins over this file, a flag over both.\n"
        "# Each line shows the default; take the '# ' away to change it.\n"
    ]
    defaults = Settings()
    for key in fields(Settings):
        about = "\n".join(f"# {line}" for line in _KEYS[key.name].about.splitlines())
        parts.append(f"{about}\n# {key.name} = {_as_toml(getattr(defaults, key.name))}\n")
    return "\n".join(parts)


def _plain_password(source: str, password: str) -> str:
    """Refused here, since what the mail client would say of it quotes a part of it."""
    if not password.isascii():
        raise ConfigurationError(
            f"{source}: the password holds characters beyond ASCII, which mail servers do not take."
        )
    return password


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


def _from_file(file: Path) -> Iterator[tuple[str, str, object]]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except OSError as exc:
        raise ConfigurationError(f"{file} cannot be read: {exc.strerror}.") from exc
    except ValueError as exc:  # not TOML, or not UTF-8
        raise ConfigurationError(f"{file} is not valid TOML: {exc}.") from exc
    for key, value in content.items():
        if key in ("smtp_password", "smtp_password_file"):
            raise ConfigurationError(
                f"{file}: {key} cannot stand in this file; set {PASSWORD_VARIABLE} or {PASSWORD_FILE_VARIABLE}."
            )
        if key not in _KEYS:
            _refuse_unknown(f"{file}: unknown setting {key!r}", key.lower())
        yield f"{key} in {file}", key, value


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[str, str, object]]:
    for name in sorted(env):
        if not name.startswith(ENV_PREFIX) or name in _NO_SETTINGS:
            continue
        key = name.removeprefix(ENV_PREFIX).lower()
        if name != _variable(key) or key not in _KEYS:
            _refuse_unknown(f"the environment: unknown variable {name!r}", key, _variable)
        try:
            value = _KEYS[key].read(env[name])
        except ValueError:
            value = env[name]  # its check says what it must be
        yield name, key, value


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    for key, value in flags.items():
        if value is not None:
            yield f"--{key.replace('_', '-')}", key, value


def _variable(key: str) -> str:
    return ENV_PREFIX + key.upper()


def _refuse_unknown(problem: str, key: str, spelled: Callable[[str], str] = str) -> NoReturn:
    near = get_close_matches(key, _KEYS, n=3)
    names = ", ".join(spelled(name) for name in near or _KEYS)
    raise ConfigurationError(f"{problem}. " + (f"Did you mean {names}?" if near else f"There are {names}."))


def _checked(source: str, key: str, value: object) -> object:
    try:
        return _KEYS[key].check(value)
    except InvalidInput as exc:
        raise ConfigurationError(f"{source}: {exc.problem}. {exc.mend}") from exc
    except ValueError as exc:
        raise ConfigurationError(f"{source} must be {exc}, not {value!r}.") from exc


def _check_contact(value: object) -> str:
    """Printable ASCII on one line: it goes into a header, between parentheses."""
    if not isinstance(value, str) or not value.isascii() or not (value.isprintable() or value == ""):
        raise ValueError("a URL or an e-mail address in plain ASCII")
    if any(c in value for c in "()\\ ") or len(value) > 200:
        raise ValueError("a URL or an e-mail address of at most 200 characters, without spaces or parentheses")
    return value


def _whole_number(lowest: int, highest: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return value

    return check


def _check_cooldown(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COOLDOWN_SECONDS:
        raise ValueError(f"a number of seconds up to {MAX_COOLDOWN_SECONDS:g}")
    return float(value)


def _check_confirm(value: object) -> int:
    if value is None or isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"a whole number from 1 to {MAX_CONFIRM}")
    check_confirm(value)
    return value


def _check_mail_from(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("an e-mail address")
    return check_address(value, "mail_from")


def _one_of(names: Collection[str]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError("one of " + ", ".join(f'"{name}"' for name in names))
        return value

    return check


def _check_smtp_host(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9._:-]{0,253}", value):
        raise ValueError("the name or address of a mail server, without a scheme")
    return value


def _check_user_name(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or len(value) > 200:
        raise ValueError("a user name of at most 200 visible characters in plain ASCII")
    return value


def _check_aws_name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{0,64}", value):
        raise ValueError("at most 64 letters, digits, '_' or '-'")
    return value


def _check_profile(value: object) -> str:
    if not isinstance(value, str) or value not in PROFILES:
        raise ValueError("one of " + ", ".join(repr(name) for name in PROFILES))
    return value


def _check_table(value: object) -> str:
    if not isinstance(value, str) or not _TABLE.fullmatch(value):
        raise ValueError("the name of a DynamoDB table: 3 to 255 letters, digits, '_', '-' or '.'")
    return value


def _check_long_aws_name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_./#-]{0,255}", value):
        raise ValueError("a name of letters, digits, '_', '-' and '.'")
    return value


def _check_bucket(value: object) -> str:
    if not isinstance(value, str) or not _BUCKET.fullmatch(value):
        raise ValueError(
            "a bucket's name, and a prefix behind a slash if one is wanted, such as links-warehouse/weekly"
        )
    return value


def _check_queue_url(value: object) -> str:
    if not isinstance(value, str) or (value and not re.fullmatch(r"https?://[!-~]{1,500}/[A-Za-z0-9_-]{1,80}", value)):
        raise ValueError("the URL of an SQS queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/work")
    return value


def _check_hosts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError('a list of host names, such as ["docs.example.com"]')
    return tuple(_host_name(name, "allowed_hosts") for name in value)


def _host_name(name: str, setting: str) -> str:
    mend = InvalidInput(setting, f"{name!r} is not a host name", "Give bare names, such as docs.example.com.")
    if any(c in name for c in "/?#:"):
        raise mend
    try:
        return host_key(f"https://{name}/")
    except RefusedUrl:
        raise mend from None


def _check_allowances(value: object) -> dict[str, Allowance]:
    if not isinstance(value, Mapping):
        raise ValueError('a table, such as {"docs.example.com" = {visits = 2, agreed_with = "Ada, docs team"}}')
    return {_host_name(str(name), "allowances"): _allowance(str(name), entry) for name, entry in value.items()}


def _allowance(host: str, entry: object) -> Allowance:
    """Refused without a word on who agreed: several visits at once are never our own decision."""
    if not isinstance(entry, Mapping) or not set(entry) <= {"visits", "agreed_with"}:
        mend = "Give the two fields visits and agreed_with, and nothing else."
        raise InvalidInput("allowances", f"{host!r} is not described rightly", mend)
    agreed_with = entry.get("agreed_with")
    if not isinstance(agreed_with, str) or not agreed_with.strip() or len(agreed_with) > MAX_AGREED_WITH:
        raise InvalidInput(
            "allowances",
            f"{host!r} has no agreed_with",
            f"Say in at most {MAX_AGREED_WITH} characters who of that host's operators agreed, and when.",
        )
    try:
        visits = _whole_number(2, MAX_VISITS)(entry.get("visits"))
    except ValueError as exc:
        mend = f"Give {exc}; without an entry a host has one visit at a time."
        raise InvalidInput("allowances", f"visits of {host!r} are {entry.get('visits')!r}", mend) from None
    return Allowance(visits=visits, agreed_with=agreed_with.strip())


def _check_webhook(value: object) -> str:
    """Its value is never repeated: such URLs hold secrets."""
    if not isinstance(value, str):
        raise InvalidInput("ops_webhook", "it is no text", "Write the URL between quotes.")
    if value and (problem := _url_problem(value)) is not None:
        mend = "Give a URL such as https://alerts.example.com/hook, or leave it empty."
        raise InvalidInput("ops_webhook", f"the URL {problem}", mend)
    return value


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return "cannot be read"
    if parts.scheme not in ("http", "https") or not named:
        return "does not begin with http:// or https:// and a host"
    if "@" in parts.netloc:
        return "holds a user name or password"
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > 2000:
        return "holds more than 2000 characters, spaces or characters beyond ASCII"
    return None


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_file(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > 1000 or value.endswith("/"):
        raise ValueError("the path of a file, within this home if it is relative, or empty")
    return value


def _check_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _check_link_ids(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError('a list of link ids, such as ["front-page", "docs-home", "status-page"]')
    return tuple(check_link_id(name, "canaries") for name in value)


def _read_switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _as_toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{}"  # its only default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_as_toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


_KEYS: Mapping[str, _Key] = {
    "contact": _Key(
        read=str,
        check=_check_contact,
        about="Where a site's operator can complain: a URL or an e-mail address. It is part of the user agent, and\n"
        "linkwatch visits no public host without it.",
    ),
    "confirm": _Key(
        read=int,
        check=_check_confirm,
        about="How many failing observations in a row make a link broken, for links that do not say it themselves.",
    ),
    "concurrency": _Key(read=int, check=_whole_number(1, MAX_CONCURRENCY), about="How many hosts are visited at once."),
    "batches": _Key(
        read=int,
        check=_whole_number(1, MAX_BATCHES),
        about="Into how many steps a run's hosts are grouped in Dagster. It never changes the pace.",
    ),
    "cooldown_seconds": _Key(
        read=float,
        check=_check_cooldown,
        about="How long a host rests after each visit: 1 s or more.",
    ),
    "mail": _Key(
        read=str,
        check=_one_of(MAILS),
        about='How mails go out: "files" writes them into this home, "smtp" and "ses" send them.',
    ),
    "mail_from": _Key(read=str, check=_check_mail_from, about="The sender of the mails."),
    "smtp_host": _Key(
        read=str,
        check=_check_smtp_host,
        about='The mail server, for "smtp". Its password is in no file of settings: set\n'
        f"{PASSWORD_VARIABLE}, or {PASSWORD_FILE_VARIABLE} to the file that holds it.",
    ),
    "smtp_port": _Key(
        read=int,
        check=_whole_number(0, 65535),
        about="Its port; 0 takes the usual one: 587 with starttls, 465 with tls, 25 with none.",
    ),
    "smtp_security": _Key(
        read=str,
        check=_one_of(SMTP_PORTS),
        about='"starttls", "tls" (from the first byte), or "none" for a server on this machine.',
    ),
    "smtp_username": _Key(read=str, check=_check_user_name, about="The account there; empty does not log in."),
    "ses_region": _Key(
        read=str,
        check=_check_aws_name,
        about='Where Amazon SES is, for "ses"; empty takes what the AWS environment says.',
    ),
    "ses_configuration_set": _Key(
        read=str,
        check=_check_aws_name,
        about="The configuration set whose events say what became of a mail; SES needs one here.",
    ),
    "profile": _Key(
        read=str,
        check=_check_profile,
        about='Where all is kept: "local" keeps it in this home, "aws" in DynamoDB, SQS and CloudWatch.',
    ),
    "allowed_hosts": _Key(
        read=_split_names,
        check=_check_hosts,
        about="Visit only these hosts and their subdomains; empty means all. Begin with domains you control.",
    ),
    "allowances": _Key(
        read=json.loads,
        check=_check_allowances,
        about="Hosts whose operators agreed to more than one visit at once: a table by host name, each with visits\n"
        "and agreed_with.",
    ),
    "breaker": _Key(
        read=_read_switch,
        check=_check_switch,
        about="Whether a run in which suspiciously much fails has its notices held until a person decides.",
    ),
    "breaker_hosts": _Key(
        read=int,
        check=_whole_number(1, 1_000_000),
        about="A run is suspect if more hosts than this, and than the next line's share of those checked, broke anew\n"
        "or newly gave no certain answer.",
    ),
    "breaker_hosts_percent": _Key(read=int, check=_whole_number(0, 100), about="The share of hosts, in percent."),
    "breaker_links": _Key(
        read=int,
        check=_whole_number(1, 1_000_000),
        about="A run is suspect if more links than this, and than the next line's share of those checked, are\n"
        "uncertain, those of the worst host left out.",
    ),
    "breaker_links_percent": _Key(read=int, check=_whole_number(0, 100), about="The share of links, in percent."),
    "canaries": _Key(
        read=_split_names,
        check=_check_link_ids,
        about="Ids of links that never fail while linkwatch is well, three or so on different hosts. A run is suspect\n"
        "if two thirds of them fail.",
    ),
    "ops_webhook": _Key(
        read=str,
        check=_check_webhook,
        about="Where on-call is told of linkwatch's own health: a URL that gets a JSON document by POST; empty posts\n"
        "nowhere. If it holds a secret, set LINKWATCH_OPS_WEBHOOK instead.",
    ),
    "ops_file": _Key(
        read=str,
        check=_check_file,
        about="The file that gets the same alarms, one JSON document a line; empty writes none.",
    ),
    "table": _Key(
        read=str,
        check=_check_table,
        about='The DynamoDB table of the profile "aws". Region and credentials are found the way boto3 finds them.',
    ),
    "queue_url": _Key(read=str, check=_check_queue_url, about="The SQS work queue (output QueueUrl)."),
    "dead_letter_queue_url": _Key(
        read=str, check=_check_queue_url, about="The queue of its dead letters (output DeadLetterQueueUrl)."
    ),
    "warehouse_bucket": _Key(
        read=str,
        check=_check_bucket,
        about='A bucket of S3 that keeps a copy of the warehouse: "links-warehouse", or "links-warehouse/weekly".\n'
        "What the home lacks is brought before a report, what is new in the home is put there after it.",
    ),
    "metrics_namespace": _Key(
        read=str, check=_check_long_aws_name, about="Where CloudWatch's alarms look for RunLate and Heartbeat."
    ),
    "allow_endpoint": _Key(
        read=_read_switch,
        check=_check_switch,
        about="Whether DynamoDB may be somewhere else than at Amazon, as an emulator is. AWS_ENDPOINT_URL is refused\n"
        "without it, so that nothing is written into the void by mistake.",
    ),
}
