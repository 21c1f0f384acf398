-- Hosts of a week by how many links ended broken, uncertain or throttled:
-- (host, links, broken, uncertain, throttled, {reason: links}, hosts in all).
WITH ended AS (
    SELECT host_of(url) AS host, outcome, reason
    FROM last_looks
    JOIN pages USING (page)
    WHERE run_id >= $since AND run_id < $until
),
by_host AS (
    SELECT
        host,
        count(*) AS links,
        count(*) FILTER (outcome = 'broken') AS broken,
        count(*) FILTER (outcome = 'uncertain') AS uncertain,
        count(*) FILTER (outcome = 'throttled') AS throttled,
        histogram(reason) FILTER (outcome IN ('broken', 'uncertain', 'throttled')) AS reasons
    FROM ended
    GROUP BY host
)
SELECT host, links, broken, uncertain, throttled, reasons, count(*) OVER () AS total
FROM by_host
WHERE broken + uncertain + throttled > 0
ORDER BY broken + uncertain + throttled DESC, host
LIMIT $most
