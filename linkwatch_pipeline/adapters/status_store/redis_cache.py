"""The latest status of each service in Redis or Valkey (`ports.StatusCache`): the original's key, JSON and life."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

from linkwatch_pipeline.adapters.status_store.rest import Rest
from linkwatch_pipeline.domain.errors import ConfigurationError, MissingExtra, StoreUnavailable
from linkwatch_pipeline.domain.service_status import (
    LIVES_FOR,
    SeenStatus,
    StatusRecord,
    seen_in,
    status_key,
    status_value,
)
from linkwatch_pipeline.domain.timestamps import format_seconds

T = TypeVar("T")

PATIENCE_SECONDS = 3.0
_READ_TOGETHER = 500
_MEND = "Give it as redis://HOST:6379/0, or rediss:// for TLS."
# Compared on the server: between reading and writing, another processor may have written a newer one. `checked_at`
# has one width, so text order is time order. What is no status of ours is replaced.
_PUT = """
local there = redis.pcall('GET', KEYS[1])  -- a key of another type is an error, and no status of ours
if type(there) == 'string' then
    local read, content = pcall(cjson.decode, there)
    if read and type(content) == 'table' and type(content.checked_at) == 'string'
            and content.checked_at > ARGV[2] then
        return 0
    end
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
return 1
"""


class RedisStatusCache:
    """Statuses in one Redis.

    Args:
        url: `redis://` or, with TLS and a verified certificate, `rediss://`.
        lives_for: how long a status is there.
        rest: leaves a server alone that does not answer.
    Raises: ConfigurationError if the URL cannot be one, MissingExtra.
    """

    def __init__(self, url: str, *, lives_for: timedelta = LIVES_FOR, rest: Rest | None = None) -> None:
        self._client = _client(url)
        self._rest = rest
        self._seconds = int(lives_for.total_seconds())

    def put(self, records: Sequence[StatusRecord]) -> None:
        if not records:
            return

        def write() -> list[Any]:
            pipe = self._client.pipeline(transaction=False)
            for record in records:
                moment = format_seconds(record.checked_at)
                pipe.eval(_PUT, 1, status_key(record.service_id), status_value(record), moment, self._seconds)
            return list(pipe.execute())

        _asked(write) if self._rest is None else self._rest.ask(lambda: _asked(write))

    def get(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        found: dict[str, SeenStatus] = {}
        for start in range(0, len(service_ids), _READ_TOGETHER):
            names = service_ids[start : start + _READ_TOGETHER]
            keys = [status_key(name) for name in names]
            values: list[str | None] = _asked(lambda keys=keys: self._client.mget(keys))  # type: ignore[misc]
            seen = {name: seen_in(value) for name, value in zip(names, values, strict=True) if value is not None}
            found |= {name: status for name, status in seen.items() if status is not None}
        return found

    def close(self) -> None:
        """End the connections."""
        self._client.close()


def check_redis_url(url: str) -> None:
    """Raise ConfigurationError if this cannot be one; redis-py need not be installed."""
    try:
        fits = urlsplit(url).scheme in ("redis", "rediss", "unix")
    except ValueError:
        fits = False
    if not fits:
        raise ConfigurationError(f"REDIS_URL is no Redis URL. {_MEND}")


def _client(url: str) -> Any:
    try:
        from redis import Redis
        from redis.backoff import ConstantBackoff
        from redis.retry import Retry
    except ImportError:
        raise MissingExtra("status", "service status") from None
    try:
        return Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
            # Once more on a new connection: every call here may be repeated, and a restart breaks those in the pool.
            retry=Retry(ConstantBackoff(0.05), 1),
            client_name="linkwatch",
        )
    except (ValueError, TypeError):
        raise ConfigurationError(f"REDIS_URL is no Redis URL. {_MEND}") from None


def _asked(call: Callable[[], T]) -> T:
    from redis.exceptions import RedisError

    try:
        return call()
    except (RedisError, OSError, ValueError) as error:
        raise StoreUnavailable(f"Redis does not answer: {error}") from error
