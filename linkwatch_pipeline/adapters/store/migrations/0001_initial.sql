-- Times are text, 2026-09-28T09:00:00.000000Z, so that text order is time order. Lists and maps are JSON.
-- A column has its field's name; what the fields mean stands with the records in linkwatch_pipeline/domain.

-- 'lkwt': how linkwatch knows that a file is its own.
PRAGMA application_id = 1818982260;

CREATE TABLE links (
    id TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    owner TEXT,
    marker TEXT,
    confirm INTEGER,
    config_version INTEGER NOT NULL,
    active_since TEXT NOT NULL,
    retired_at TEXT,
    places TEXT NOT NULL,
    also_used_by TEXT NOT NULL,
    state TEXT NOT NULL,
    state_since TEXT,
    version INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL CHECK (typeof(last_sequence) = 'integer'),
    broken_streak INTEGER NOT NULL,
    allocations TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX links_by_host ON links (host, id);
CREATE INDEX links_by_owner ON links (owner, id);

CREATE TABLE owners (
    team TEXT NOT NULL PRIMARY KEY,
    address TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    intended_at TEXT NOT NULL,
    started_at TEXT NOT NULL,
    state TEXT NOT NULL,
    expected INTEGER,
    dispatched INTEGER NOT NULL,
    dispatched_at TEXT,
    closed_at TEXT,
    cursor TEXT,
    retry_of TEXT,
    totals TEXT
) WITHOUT ROWID;

CREATE TABLE jobs (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    link_id TEXT NOT NULL,
    host TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (typeof(sequence) = 'integer' AND sequence >= 0),
    config_version INTEGER NOT NULL,
    next TEXT,
    retry_of TEXT,
    status TEXT NOT NULL,
    deferrals INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    content_digest TEXT,
    outcome TEXT,
    reason TEXT,
    PRIMARY KEY (run_id, link_id)
) WITHOUT ROWID;
CREATE INDEX jobs_by_host ON jobs (run_id, host, link_id);

CREATE TABLE chains (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    host TEXT NOT NULL,
    head TEXT,
    head_ready_at TEXT NOT NULL,
    remaining INTEGER NOT NULL,
    total INTEGER NOT NULL,
    counts TEXT NOT NULL,
    resends INTEGER NOT NULL,
    streak INTEGER NOT NULL,
    first_observed_at TEXT,
    last_observed_at TEXT,
    planned_sent_at TEXT,
    PRIMARY KEY (run_id, host)
) WITHOUT ROWID;

CREATE TABLE hosts (
    host TEXT NOT NULL PRIMARY KEY,
    owner_token TEXT,
    job_id TEXT,
    lease_until TEXT,
    next_allowed_at TEXT,
    backoff_level INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE observations (
    job_id TEXT NOT NULL UNIQUE,
    run_id TEXT,
    link_id TEXT NOT NULL REFERENCES links (id),
    url TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (typeof(sequence) = 'integer' AND sequence >= 0),
    config_version INTEGER NOT NULL,
    rules_version INTEGER NOT NULL,
    retry_of TEXT,
    started_at TEXT NOT NULL,
    observed_at TEXT NOT NULL,
    status INTEGER,
    outcome TEXT NOT NULL,
    reason TEXT,
    content_hash TEXT,
    content_complete INTEGER NOT NULL,
    marker_found INTEGER,
    bytes_read INTEGER NOT NULL,
    latency_ms INTEGER NOT NULL,
    content_type TEXT,
    final_url TEXT,
    redirects TEXT NOT NULL,
    tls_not_after TEXT,
    page_hints TEXT NOT NULL,
    PRIMARY KEY (link_id, sequence)
);
CREATE INDEX observations_by_run ON observations (run_id, link_id, sequence);
CREATE INDEX observations_by_time ON observations (observed_at, link_id, sequence);

CREATE TABLE transitions (
    id TEXT NOT NULL UNIQUE,
    link_id TEXT NOT NULL REFERENCES links (id),
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    version INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    at TEXT NOT NULL,
    since TEXT,
    PRIMARY KEY (link_id, version)
) WITHOUT ROWID;

CREATE TABLE notices (
    transition_id TEXT NOT NULL PRIMARY KEY REFERENCES transitions (id),
    link_id TEXT NOT NULL,
    url TEXT NOT NULL,
    owner TEXT,
    also_used_by TEXT NOT NULL,
    places TEXT NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    since TEXT,
    run_id TEXT,
    job_id TEXT NOT NULL,
    observed_status INTEGER,
    observed_reason TEXT,
    observed_at TEXT NOT NULL,
    created_at TEXT NOT NULL,
    release_at TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    claimed_by TEXT,
    claim_until TEXT,
    recipient TEXT,
    provider_id TEXT,
    last_error TEXT,
    next_attempt_at TEXT,
    sent_at TEXT
) WITHOUT ROWID;
CREATE INDEX notices_by_age ON notices (created_at, transition_id);
CREATE INDEX notices_by_link ON notices (link_id, created_at, transition_id);
CREATE INDEX notices_by_run ON notices (run_id, created_at, transition_id);
-- Notices are kept for good; a sender that looks every minute reads only what is left to do.
CREATE INDEX notices_unsettled ON notices (created_at, transition_id)
    WHERE status NOT IN ('sent', 'delivered', 'bounced', 'complained', 'muted', 'discarded');

CREATE TABLE exported_weeks (
    week TEXT NOT NULL PRIMARY KEY,
    rows INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    exported_at TEXT NOT NULL
) WITHOUT ROWID;
