-- The tables of service status. A database that has the first two already keeps them: nothing here changes a table.

CREATE TABLE IF NOT EXISTS services (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    is_active boolean NOT NULL DEFAULT true
);

CREATE TABLE IF NOT EXISTS service_status (
    id uuid PRIMARY KEY,
    service_id uuid NOT NULL REFERENCES services (id) ON DELETE CASCADE,
    status text NOT NULL,
    response_time double precision,
    checked_at timestamptz NOT NULL
);

-- The newest row of a service, and its last 24 hours.
CREATE INDEX IF NOT EXISTS service_status_by_service ON service_status (service_id, checked_at DESC);

-- Only for notices (STATUS_NOTICES): where each service stands, and the changes that somebody is to be told of.
CREATE TABLE IF NOT EXISTS linkwatch_service_states (
    service_id text PRIMARY KEY,
    status text,
    version integer NOT NULL DEFAULT 0,
    streak integer NOT NULL DEFAULT 0,
    since timestamptz,
    last_checked_at timestamptz
);

CREATE TABLE IF NOT EXISTS linkwatch_service_changes (
    service_id text NOT NULL,
    version integer NOT NULL,
    user_id text NOT NULL,
    from_status text,
    to_status text NOT NULL,
    checked_at timestamptz NOT NULL,
    since timestamptz,
    told_at timestamptz,
    PRIMARY KEY (service_id, version)
);

CREATE INDEX IF NOT EXISTS linkwatch_service_changes_untold
    ON linkwatch_service_changes (checked_at) WHERE told_at IS NULL;

-- The least that the two halves need, for a role of their own:
--   GRANT SELECT ON services TO linkwatch;
--   GRANT SELECT, INSERT ON service_status TO linkwatch;
--   GRANT SELECT, INSERT, UPDATE ON linkwatch_service_states, linkwatch_service_changes TO linkwatch;   -- notices
--   GRANT DELETE ON service_status TO linkwatch;                                                        -- pruning
