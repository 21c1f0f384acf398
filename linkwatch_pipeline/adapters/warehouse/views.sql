-- The views of the warehouse, over the views `..._files` (the weeks' Parquet files) and `pages`.

-- The host of a URL as it is stored: canonical, so without credentials, in lower case, as an A-label or [address].
-- Nearly all are plain, and a split is many times faster than the pattern.
CREATE MACRO host_of(address) AS
    CASE
        WHEN regexp_matches(split_part(address, '/', 3), '[?#\[]')
            THEN regexp_extract(address, '^[a-z]+://(\[[^\]]*\]|[^/?#:]*)', 1)
        ELSE split_part(split_part(address, '/', 3), ':', 1)
    END;
-- What follows the host and port, without query and fragment.
CREATE MACRO path_of(address) AS regexp_extract(address, '^[a-z]+://[^/?#]*([^?#]*)', 1);
-- The part of a host name that somebody registered, as near as a rule of thumb comes: example.com, example.co.uk.
CREATE MACRO site_of(host) AS
    CASE
        WHEN host[1] = '[' OR regexp_matches(host, '^[0-9.]+$') THEN host
        ELSE regexp_extract(host, '([^.]+\.((com?|org|net|gov|gob|edu|ac|or|ne|go)\.[a-z][a-z]|[^.]+))$', 1)
    END;

-- Each observation with the fields of a linkwatch observation.
CREATE VIEW observations AS
SELECT
    coalesce(job_id, coalesce(run_id, sequence::VARCHAR) || ':' || link_id) AS job_id,
    run_id, link_id, url, sequence, config_version, rules_version, retry_of,
    make_timestamptz(epoch_us(observed_at) - elapsed_us) AS started_at,
    observed_at, status, outcome, reason, content_hash, content_complete, marker_found, bytes_read, latency_ms,
    content_type,
    CASE WHEN stayed THEN url ELSE final_url END AS final_url,
    redirects, tls_not_after, page_hints, page, week
FROM observations_files
JOIN pages USING (page);

-- Looks of runs, without the link and URL of their page; checks by hand have no run and count nowhere. `run_week` is the
-- Monday of the run, whenever it was late.
CREATE VIEW looks AS
SELECT *, left(run_id, 10) AS run_week
FROM observations_files
WHERE run_id IS NOT NULL;

-- The few looks of retry runs. A weekly run looks at a link once, so every further look of its week is among these.
CREATE VIEW later_looks AS
SELECT page, run_week, sequence
FROM looks
WHERE contains(run_id, '~retry-');

-- Each link's last look of each week.
CREATE VIEW last_looks AS
SELECT looks.*
FROM looks
ANTI JOIN later_looks AS later
    ON later.page = looks.page AND later.run_week = looks.run_week AND later.sequence > looks.sequence;

-- Every change of state worth telling, with the URL that it was about and what the deciding look saw.
CREATE VIEW transitions AS
SELECT changed.*, told.url, told.owner, told.observed_status, told.observed_reason
FROM transitions_files AS changed
LEFT JOIN notices_files AS told ON told.transition_id = changed.id;

CREATE VIEW notices AS FROM notices_files;

-- Links per week, owner (as the week was summarised), outcome and reason, each link by its last look of the week.
-- Weeks whose aggregates are absent or old are counted from the looks themselves.
CREATE VIEW weekly_outcomes AS
WITH fresh AS (
    SELECT *, left(run_id, 10) AS run_week
    FROM unsummarised_files
    WHERE run_id IS NOT NULL
)
FROM summaries_files
UNION ALL
SELECT fresh.run_week::DATE, links.owner, outcome, reason, count(*)
FROM fresh
JOIN pages USING (page)
LEFT JOIN links USING (link_id)
ANTI JOIN later_looks AS later
    ON later.page = fresh.page AND later.run_week = fresh.run_week AND later.sequence > fresh.sequence
WHERE fresh.run_week::DATE NOT IN (SELECT unnest(weeks) FROM summarised)
GROUP BY ALL;
