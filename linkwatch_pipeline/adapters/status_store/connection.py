"""One PostgreSQL connection that survives restarts of the server: opened when needed, opened anew when it broke."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from linkwatch_pipeline.adapters.status_store.database_url import DatabasePlace, FindPlace
from linkwatch_pipeline.adapters.status_store.rest import Rest
from linkwatch_pipeline.domain.errors import MissingExtra, StoreError, StoreUnavailable, StoreUnusable

T = TypeVar("T")
logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 8.0
APPLICATION = "linkwatch"
# SQLSTATE classes: the server goes down, has no room, or asks for another try. Nothing was written.
# 25: it was a writer when we connected and reads only now, as after a failover.
_PASSING = ("08", "25", "40", "53", "55", "57", "58")
_LOGIN = "28"
_NO_TLS = "Server refuses SSL"  # pg8000's words
_PLAIN = "Switch TLS on there, or add ?sslmode=disable to DATABASE_URL if the way to it is safe."
_ABSENT = ("42P01", "42703")  # no such table, no such column


class Connection:
    """Runs pieces of work, each in a transaction of its own. For one thread at a time.

    Args:
        find: where the database is. Asked again when the login is refused, since a secret may have been rotated.
        rest: leaves a server alone that does not answer; None asks it each time.
        patience_seconds: how long to wait for a connection, and for each answer.
    """

    def __init__(
        self, find: FindPlace, *, rest: Rest | None = None, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._find = find
        self._rest = rest
        self._patience_seconds = patience_seconds
        self._place: DatabasePlace | None = None
        self._open: Any = None

    def run(self, work: Callable[[Any], T]) -> T:
        """Do the work in a transaction; once more on a new connection if this one was broken. Work can be repeated.

        Args: work: given pg8000's native connection.
        Raises: StoreUnavailable, StoreUnusable; DatabaseError of pg8000 for what one statement's values made wrong.
        """
        return self._run(work) if self._rest is None else self._rest.ask(lambda: self._run(work))

    def close(self) -> None:
        """End the connection, if there is one."""
        opened, self._open = self._open, None
        if opened is None:
            return
        try:
            opened.close()
        except Exception as error:  # a broken connection cannot say goodbye
            logger.debug("closing a broken connection: %s", error)

    def _run(self, work: Callable[[Any], T]) -> T:
        was_open = self._open is not None
        try:
            return self._in_transaction(work)
        except StoreUnavailable as error:
            # A fresh one: the server is really not there. One that kept us waiting is not waited for twice.
            if not was_open or _kept_us_waiting(error):
                raise
        return self._in_transaction(work)

    def _in_transaction(self, work: Callable[[Any], T]) -> T:
        from pg8000.exceptions import DatabaseError, InterfaceError

        connection = self._connected()
        try:
            connection.run("START TRANSACTION")
            result = work(connection)
            connection.run("COMMIT")
            return result
        except DatabaseError as error:
            self._after_refusal(error)
            raise
        except (InterfaceError, OSError, EOFError) as error:
            self.close()
            raise StoreUnavailable(f"PostgreSQL at {self._place} does not answer: {error}") from error
        except BaseException:
            self.close()  # in an unknown state
            raise

    def _after_refusal(self, error: Exception) -> None:
        """Return if only the statement was refused. Raises what else it means."""
        code, words = sqlstate(error), _words(error)
        if code[:2] in _PASSING or not code:
            self.close()
            raise StoreUnavailable(f"PostgreSQL at {self._place} cannot serve now: {words}") from error
        try:
            self._open.run("ROLLBACK")
        except Exception:
            self.close()
        if code in _ABSENT or code.startswith("42"):
            raise StoreUnusable(
                f"the database {self._place} is not as the monitor needs it: {words}. "
                "deploy/status-tables.sql has the tables and rights."
            ) from error

    def _connected(self) -> Any:
        if self._open is None:
            self._open = self._connect()
        return self._open

    def _connect(self) -> Any:
        remembered, self._place = self._place, None
        if remembered is not None:
            try:
                return self._open_at(remembered)
            except _LoginRefused:
                logger.info("the login is refused, where the database is is looked up again")
        return self._open_at(self._find())

    def _open_at(self, place: DatabasePlace) -> Any:
        try:
            from pg8000.exceptions import DatabaseError, InterfaceError
            from pg8000.native import Connection as Native
        except ImportError:
            raise MissingExtra("status", "service status") from None
        try:
            # Of our own, since pg8000 leaves it open when the login is refused.
            with _closed_on_error(socket.create_connection((place.host, place.port), self._patience_seconds)) as sock:
                opened = Native(
                    place.user,
                    host=place.host,
                    database=place.name,
                    password=place.password or "",  # for a server that asks for one: it says what is wrong
                    sock=sock,
                    ssl_context=place.ssl_context(),
                    application_name=APPLICATION,
                )
        except ssl.SSLCertVerificationError as error:
            raise StoreUnusable(
                f"the certificate of PostgreSQL at {place} is not trusted: {error.verify_message}. Name its "
                "authority with ?sslrootcert=FILE in DATABASE_URL."
            ) from error
        except DatabaseError as error:
            raise _refused_by(place, error) from error
        except (InterfaceError, OSError, EOFError, UnicodeError) as error:  # the last: a host that no name can have
            if _NO_TLS in str(error):
                raise StoreUnusable(f"PostgreSQL at {place} has no TLS. {_PLAIN}") from error
            raise StoreUnavailable(f"PostgreSQL at {place} cannot be reached: {error}") from error
        self._place = place
        return opened


def _kept_us_waiting(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, TimeoutError):
        error = error.__cause__
    return error is not None


class _LoginRefused(StoreUnusable):
    """The server knows no such user, or another password."""


def _refused_by(place: DatabasePlace, error: Exception) -> StoreError:
    words = f"PostgreSQL at {place} refuses the connection: {_words(error)}"
    if sqlstate(error).startswith(_LOGIN):
        return _LoginRefused(words)
    return StoreUnusable(words) if sqlstate(error).startswith("3D") else StoreUnavailable(words)


@contextmanager
def _closed_on_error(sock: socket.socket) -> Iterator[socket.socket]:
    try:
        yield sock
    except BaseException:
        sock.close()
        raise


def sqlstate(error: Exception) -> str:
    """The server's five-letter code; empty if the error is not the server's word."""
    fields = error.args[0] if error.args else None
    return str(fields.get("C", "")) if isinstance(fields, dict) else ""


def _words(error: Exception) -> str:
    fields = error.args[0] if error.args else None
    return str(fields.get("M", error)) if isinstance(fields, dict) else str(error)
