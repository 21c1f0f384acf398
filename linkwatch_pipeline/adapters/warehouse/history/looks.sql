-- The made-up looks with everything that an observation says.
CREATE TEMP TABLE incoming AS
WITH joined AS (
    SELECT
        looks.*,
        links.link_id,
        links.url,
        regexp_extract(links.url, '^https://([^/]*)', 1) AS host,
        nullif(answers.status, 0) AS status,
        answers.outcome,
        nullif(answers.reason, '') AS reason,
        CASE answers.marker_found WHEN 1 THEN true WHEN 0 THEN false END AS marker_found
    FROM made_looks AS looks
    JOIN made_links AS links ON links.link = looks.link
    JOIN made_answers AS answers ON answers.answer = looks.answer
),
led AS (
    SELECT
        *,
        CASE redirect
            WHEN 0 THEN url
            WHEN 1 THEN 'https://' || host || '/current/' || link
            WHEN 2 THEN 'https://' || host || '/latest/' || link
            WHEN 3 THEN 'https://' || host || '/'
            ELSE 'https://www.sedoparking.com/park/' || host
        END AS target
    FROM joined
)
SELECT
    run_id || ':' || link_id AS job_id,
    run_id,
    link_id,
    url,
    sequence::BIGINT AS sequence,
    1::BIGINT AS config_version,
    $rules::BIGINT AS rules_version,
    -- What is retried again names the job of the weekly run, as dispatch does.
    CASE WHEN parent IS NOT NULL THEN split_part(parent, '~', 1) || ':' || link_id END AS retry_of,
    make_timestamptz(observed_us - elapsed) AS started_at,
    make_timestamptz(observed_us) AS observed_at,
    status::INTEGER AS status,
    outcome,
    reason,
    CASE
        WHEN status IS NULL THEN NULL
        WHEN redirect >= 3 THEN sha256('gone ' || host)
        WHEN status = 200 THEN sha256($seed || ' ' || link || ' ' || version)
        ELSE sha256(status || ' ' || host)
    END AS content_hash,
    bytes_read < 65536 AS content_complete,
    marker_found,
    bytes_read::BIGINT AS bytes_read,
    latency_ms::BIGINT AS latency_ms,
    CASE WHEN status IS NOT NULL THEN 'text/html' END AS content_type,
    CASE WHEN status IS NOT NULL THEN target END AS final_url,
    CASE
        WHEN redirect = 0 THEN []
        ELSE [{url: url, status: CASE redirect WHEN 1 THEN 301 ELSE 302 END::INTEGER}]
    END::STRUCT(url VARCHAR, status INTEGER)[] AS redirects,
    CASE WHEN status IS NOT NULL THEN make_timestamptz(intended_us + certificate * 86400000000) END AS tls_not_after,
    []::VARCHAR[] AS page_hints
FROM led
