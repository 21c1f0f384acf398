-- Links that broke, recovered or stayed broken in a week: (link_id, url, since, last good, both in microseconds, status of
-- the deciding look, outcome of the week's last look, links in all). Transitions belong to the week they were observed in.
WITH latest AS (
    SELECT link_id, url, to_state, "at", since, observed_status, "at" >= $monday::TIMESTAMPTZ AS in_this_week
    FROM transitions
    WHERE "at" < $next_monday::TIMESTAMPTZ
    QUALIFY row_number() OVER (PARTITION BY link_id ORDER BY version DESC) = 1
),
wanted AS (
    SELECT *
    FROM latest
    WHERE CASE $kind
        WHEN 'newly_broken' THEN in_this_week AND to_state = 'broken'
        WHEN 'recovered' THEN in_this_week AND to_state = 'reachable'
        -- No transition tells that a link was retired or has another URL: the registry does.
        ELSE NOT in_this_week AND to_state = 'broken' AND NOT EXISTS (
            SELECT 1
            FROM links
            WHERE links.link_id = latest.link_id AND (retired_at IS NOT NULL OR links.url <> latest.url)
        )
    END
),
seen AS (
    SELECT link_id, any_value(outcome) AS outcome
    FROM last_looks
    JOIN pages USING (page)
    SEMI JOIN wanted USING (link_id)
    WHERE run_id >= $since AND run_id < $until
    GROUP BY link_id
)
SELECT
    link_id, url, epoch_us("at") AS since, epoch_us(since) AS last_good, observed_status, outcome, count(*) OVER () AS total
FROM wanted
LEFT JOIN seen USING (link_id)
ORDER BY "at", link_id
LIMIT $most
