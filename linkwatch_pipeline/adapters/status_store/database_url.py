"""Where the database is: a `DATABASE_URL`, or the secret that holds it, as values. Credentials are percent-decoded.

`sslmode` means what it means to libpq. Without one, a database on this machine is reached plainly and any other one
over TLS with its certificate and name verified: a silent plain connection is nobody's choice.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from linkwatch_pipeline.domain.errors import ConfigurationError, StoreUnavailable
from linkwatch_pipeline.domain.json_text import read_json

logger = logging.getLogger(__name__)

DEFAULT_PORT = 5432
SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
_MEND = "Give it as postgresql://USER:PASSWORD@HOST:5432/NAME, special characters percent-encoded."
_USED = ("sslmode", "sslrootcert")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePlace:
    """A PostgreSQL database and how it is reached. Neither user nor password is ever shown."""

    host: str
    port: int
    name: str
    user: str = field(repr=False)
    password: str | None = field(repr=False)
    sslmode: str
    sslrootcert: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.name}"

    def ssl_context(self) -> ssl.SSLContext | bool | None:
        """What pg8000 is given: False is plain, None is TLS if the server has it.

        Raises: ConfigurationError if the root certificates cannot be read.
        """
        if self.sslmode in ("disable", "prefer"):
            return False if self.sslmode == "disable" else None
        try:
            context = ssl.create_default_context(cafile=self.sslrootcert)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"sslrootcert {self.sslrootcert} cannot be read: {error}.") from error
        context.check_hostname = self.sslmode == "verify-full"
        # As in libpq, `require` verifies the certificate only if somebody said by whom.
        if self.sslmode == "require" and self.sslrootcert is None:
            context.verify_mode = ssl.CERT_NONE
        return context


def parse_database_url(text: str, *, setting: str = "DATABASE_URL") -> DatabasePlace:
    """Read a URL as SQLAlchemy and libpq do. Raises ConfigurationError, which never repeats the URL: it has a password.

    Args: setting: what the person calls it.
    """
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError(f"{setting} is no URL. {_MEND}") from None
    if parts.scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise ConfigurationError(f"{setting} does not begin with postgresql://. {_MEND}")
    if not host or not parts.username or not parts.path.strip("/"):
        missing = "host" if not host else "user" if not parts.username else "database name"
        raise ConfigurationError(f"{setting} has no {missing}. {_MEND}")
    if unquote(host).startswith("/"):
        raise ConfigurationError(f"{setting} names a Unix socket, and linkwatch speaks TCP. {_MEND}")
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":  # what stands there may be half a password
        raise ConfigurationError(f"{setting} has an @ behind its host. {_MEND}")
    options = dict(parse_qsl(parts.query))
    for name in sorted(options.keys() - set(_USED)):
        _warn_unused(setting, name)
    return DatabasePlace(
        host=unquote(host),
        port=port or DEFAULT_PORT,
        name=unquote(parts.path.removeprefix("/")),
        user=unquote(parts.username),
        password=unquote(parts.password) if parts.password is not None else None,
        sslmode=_sslmode(options.get("sslmode"), host, setting),
        sslrootcert=options.get("sslrootcert"),
    )


def read_secret(arn: str, client: Any) -> DatabasePlace:
    """The place that a Secrets Manager secret holds: a URL as text, `DATABASE_URL` in JSON, or RDS's own JSON.

    Args: client: boto3's Secrets Manager client.
    Raises: StoreUnavailable if it cannot be read, ConfigurationError if it holds something else.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        text = str(client.get_secret_value(SecretId=arn)["SecretString"])
    except (BotoCoreError, ClientError, KeyError) as error:
        raise StoreUnavailable(f"the secret of DATABASE_URL_SECRET_ARN cannot be read: {error}") from error
    return parse_secret(text)


def parse_secret(text: str) -> DatabasePlace:
    """Read a secret's text. Raises ConfigurationError, which never repeats it."""
    setting = "the secret of DATABASE_URL_SECRET_ARN"
    if not text.lstrip().startswith("{"):
        return parse_database_url(text, setting=setting)
    try:
        content = read_json(text)
    except ValueError:
        raise ConfigurationError(f"{setting} is neither a URL nor JSON.") from None
    if "DATABASE_URL" in content:
        return parse_database_url(str(content["DATABASE_URL"]), setting=setting)
    missing = [name for name in ("username", "password", "host") if name not in content]
    if missing:
        raise ConfigurationError(f"{setting} has no {', '.join(missing)}. Give a URL, or the JSON that RDS writes.")
    user, password = (quote(str(content[name]), safe="") for name in ("username", "password"))
    name = quote(str(content.get("dbname") or "postgres"), safe="")
    mode = f"?sslmode={content['sslmode']}" if content.get("sslmode") else ""
    port = content.get("port") or DEFAULT_PORT
    return parse_database_url(f"postgresql://{user}:{password}@{content['host']}:{port}/{name}{mode}", setting=setting)


@cache  # once: the URL is read again for each connection
def _warn_unused(setting: str, option: str) -> None:
    logger.warning("%s: the option %s is not used", setting, option)


FindPlace = Callable[[], DatabasePlace]


def _sslmode(given: str | None, host: str, setting: str) -> str:
    if given is None:
        return "disable" if _is_here(host) else "verify-full"
    if given not in SSL_MODES:
        raise ConfigurationError(f"{setting}: sslmode is {given!r}; give one of {', '.join(SSL_MODES)}.")
    return given


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
