-- Which notices go out when: releases and rulings of runs, digests, mutes, acknowledgements.

ALTER TABLE links ADD COLUMN ack TEXT;

ALTER TABLE owners ADD COLUMN delivery TEXT NOT NULL DEFAULT 'each';

ALTER TABLE runs ADD COLUMN ruling TEXT;
-- Notices of runs that are over were released when they were made.
UPDATE runs SET ruling = '{"at":"' || coalesce(closed_at, started_at) || '","by":null,"kind":"released","why":""}'
    WHERE state IN ('closed', 'missed');

-- release_at may be empty from now on: SQLite changes that only in a new table.
ALTER TABLE notices RENAME TO old_notices;
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
    release_at TEXT,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    claimed_by TEXT,
    claim_until TEXT,
    recipient TEXT,
    mail_id TEXT,
    provider_id TEXT,
    last_error TEXT,
    next_attempt_at TEXT,
    sent_at TEXT
) WITHOUT ROWID;
INSERT INTO notices
    SELECT transition_id, link_id, url, owner, also_used_by, places, from_state, to_state, since, run_id, job_id,
        observed_status, observed_reason, observed_at, created_at, release_at, status, attempts, claimed_by,
        claim_until, recipient, CASE WHEN attempts > 0 THEN transition_id END, provider_id, last_error,
        next_attempt_at, sent_at
    FROM old_notices;
DROP TABLE old_notices;
CREATE INDEX notices_by_age ON notices (created_at, transition_id);
CREATE INDEX notices_by_link ON notices (link_id, created_at, transition_id);
CREATE INDEX notices_by_run ON notices (run_id, created_at, transition_id);
CREATE INDEX notices_unsettled ON notices (created_at, transition_id)
    WHERE status NOT IN ('sent', 'delivered', 'bounced', 'complained', 'muted', 'discarded');

CREATE TABLE mutes (
    target TEXT NOT NULL PRIMARY KEY,
    reason TEXT NOT NULL,
    muted_by TEXT,
    since TEXT NOT NULL,
    until TEXT NOT NULL,
    ended_at TEXT,
    lifted_at TEXT
) WITHOUT ROWID;
