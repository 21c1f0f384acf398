"""What the warehouse's files hold: the columns of each table, as analysts see them and as they stand in the files.

The words of every column are in docs/reference/warehouse.md. `SCHEMA_VERSION` stands in each file's metadata and is
raised when a column changes its meaning.
"""

from __future__ import annotations

SCHEMA_VERSION = 2
INSTANT = "TIMESTAMPTZ"
PLACES = "STRUCT(file VARCHAR, line INTEGER)[]"

# The fields of `domain.observations.Observation` under their own names: what the view `observations` shows.
COLUMNS = {
    "job_id": "VARCHAR",
    "run_id": "VARCHAR",
    "link_id": "VARCHAR",
    "url": "VARCHAR",
    "sequence": "BIGINT",
    "config_version": "BIGINT",
    "rules_version": "BIGINT",
    "retry_of": "VARCHAR",
    "started_at": INSTANT,
    "observed_at": INSTANT,
    "status": "INTEGER",
    "outcome": "VARCHAR",
    "reason": "VARCHAR",
    "content_hash": "VARCHAR",
    "content_complete": "BOOLEAN",
    "marker_found": "BOOLEAN",
    "bytes_read": "BIGINT",
    "latency_ms": "BIGINT",
    "content_type": "VARCHAR",
    "final_url": "VARCHAR",
    "redirects": "STRUCT(url VARCHAR, status INTEGER)[]",
    "tls_not_after": INSTANT,
    "page_hints": "VARCHAR[]",
}
TRANSITIONS = {
    "id": "VARCHAR",
    "link_id": "VARCHAR",
    "from_state": "VARCHAR",
    "to_state": "VARCHAR",
    "version": "BIGINT",
    "sequence": "BIGINT",
    "job_id": "VARCHAR",
    "at": INSTANT,
    "since": INSTANT,
}
NOTICES = {
    "transition_id": "VARCHAR",
    "link_id": "VARCHAR",
    "url": "VARCHAR",
    "owner": "VARCHAR",
    "also_used_by": "VARCHAR[]",
    "places": PLACES,
    "from_state": "VARCHAR",
    "to_state": "VARCHAR",
    "since": INSTANT,
    "run_id": "VARCHAR",
    "job_id": "VARCHAR",
    "observed_status": "INTEGER",
    "observed_reason": "VARCHAR",
    "observed_at": INSTANT,
    "created_at": INSTANT,
    "release_at": INSTANT,
    "status": "VARCHAR",
    "attempts": "INTEGER",
    "claimed_by": "VARCHAR",
    "claim_until": INSTANT,
    "recipient": "VARCHAR",
    "mail_id": "VARCHAR",
    "provider_id": "VARCHAR",
    "last_error": "VARCHAR",
    "next_attempt_at": INSTANT,
    "sent_at": INSTANT,
}
LINKS = {
    "link_id": "VARCHAR",
    "url": "VARCHAR",
    "host": "VARCHAR",
    "owner": "VARCHAR",
    "also_used_by": "VARCHAR[]",
    "marker": "VARCHAR",
    "state": "VARCHAR",
    "state_since": INSTANT,
    "retired_at": INSTANT,
    "places": PLACES,
}
SUMMARY = {"run_week": "DATE", "owner": "VARCHAR", "outcome": "VARCHAR", "reason": "VARCHAR", "links": "BIGINT"}
PAGES = {"page": "INTEGER", "link_id": "VARCHAR", "url": "VARCHAR"}

# How an observation stands in its file. What follows from other columns is left out (NULL): millions of rows say it.
STORED = {
    "page": ("INTEGER", "page"),
    "sequence": ("BIGINT", "sequence"),
    "run_id": ("VARCHAR", "run_id"),
    "job_id": ("VARCHAR", "nullif(job_id, coalesce(run_id, sequence::VARCHAR) || ':' || link_id)"),
    "config_version": ("BIGINT", "config_version"),
    "rules_version": ("BIGINT", "rules_version"),
    "retry_of": ("VARCHAR", "retry_of"),
    "observed_at": (INSTANT, "observed_at"),
    "elapsed_us": ("BIGINT", "epoch_us(observed_at) - epoch_us(started_at)"),
    "status": ("INTEGER", "status"),
    "outcome": ("VARCHAR", "outcome"),
    "reason": ("VARCHAR", "reason"),
    "content_hash": ("VARCHAR", "content_hash"),
    "content_complete": ("BOOLEAN", "content_complete"),
    "marker_found": ("BOOLEAN", "marker_found"),
    "bytes_read": ("BIGINT", "bytes_read"),
    "latency_ms": ("BIGINT", "latency_ms"),
    "content_type": ("VARCHAR", "content_type"),
    "stayed": ("BOOLEAN", "coalesce(final_url = url, false)"),
    "final_url": ("VARCHAR", "nullif(final_url, url)"),
    "redirects": ("STRUCT(url VARCHAR, status INTEGER)[]", "redirects"),
    "tls_not_after": (INSTANT, "tls_not_after"),
    "page_hints": ("VARCHAR[]", "page_hints"),
}
# The way back, for the columns that do not stand there as they are.
_RESTORED = {
    "job_id": "coalesce(job_id, coalesce(run_id, sequence::VARCHAR) || ':' || link_id)",
    "started_at": "make_timestamptz(epoch_us(observed_at) - elapsed_us)",
    "final_url": "CASE WHEN stayed THEN url ELSE final_url END",
}
RESTORED = {column: _RESTORED.get(column, column) for column in COLUMNS}
