"""The closed list of machine-readable reasons (ARCHITECTURE: observation fields)."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why an observation is not plainly reachable, or why a job ended without one."""

    # the connection
    TIMEOUT = "timeout"
    DNS = "dns"
    TLS = "tls"
    TLS_NAME = "tls_name"
    TLS_EXPIRED = "tls_expired"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_RESET = "connection_reset"
    # the conversation
    PROTOCOL = "protocol"
    OVERSIZE_HEADERS = "oversize_headers"
    OVERSIZE_TRAILERS = "oversize_trailers"
    INCOMPLETE_BODY = "incomplete_body"
    INCOMPLETE_CONTENT = "incomplete_content"
    # redirects
    TOO_MANY_REDIRECTS = "too_many_redirects"
    REDIRECT_LOOP = "redirect_loop"
    REDIRECT_INVALID = "redirect_invalid"
    DOWNGRADE = "downgrade"
    REDIRECT_HOST_BUSY = "redirect_host_busy"
    # refused by our own policy
    BLOCKED_ADDRESS = "blocked_address"
    BLOCKED_URL = "blocked_url"
    BLOCKED_PORT = "blocked_port"
    BLOCKED_SCHEME = "blocked_scheme"
    # what the server said
    AUTH = "auth"
    BOT_CHALLENGE = "bot_challenge"
    SERVER_ERROR = "server_error"
    UNEXPECTED_STATUS = "unexpected_status"
    GONE = "gone"
    RATE_LIMITED = "rate_limited"
    MARKER_MISSING = "marker_missing"
    # ourselves
    INTERNAL = "internal"
    # jobs that ended without an observation
    HOST_THROTTLED = "host_throttled"
    STALLED = "stalled"
    DEAD_LETTER = "dead_letter"
    POISON = "poison"
    LINK_DAMAGED = "link_damaged"
    CONFIG_CHANGED = "config_changed"
    SEQUENCE_TAKEN = "sequence_taken"
    RETIRED = "retired"
