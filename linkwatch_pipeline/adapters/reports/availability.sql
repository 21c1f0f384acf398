-- Links looked at in a week that were broken in any of the last weeks: (link_id, url, weeks reachable, broken, unsure, no
-- data, links in all). Only throttled looks are looked at again in their week, so a look with a verdict is the last one.
WITH now AS (
    SELECT DISTINCT page
    FROM looks
    WHERE run_id >= $since AND run_id < $until
),
troubled AS (
    SELECT DISTINCT looks.page
    FROM looks
    SEMI JOIN now USING (page)
    WHERE outcome = 'broken' AND run_id >= $first AND run_id < $until
),
counted AS (
    SELECT
        looks.page,
        count(*) FILTER (outcome = 'reachable') AS reachable,
        count(*) FILTER (outcome = 'broken') AS broken,
        count(DISTINCT run_week) AS weeks,
        date_diff('week', min(run_week)::DATE, $since::DATE) + 1 AS weeks_known
    FROM looks
    SEMI JOIN troubled USING (page)
    WHERE run_id >= $first AND run_id < $until
    GROUP BY looks.page
)
SELECT
    link_id,
    url,
    reachable,
    broken,
    weeks - reachable - broken AS unsure,
    weeks_known - weeks AS no_data,
    count(*) OVER () AS total
FROM counted
JOIN pages USING (page)
ORDER BY reachable / (reachable + broken), broken DESC, link_id
LIMIT $most
