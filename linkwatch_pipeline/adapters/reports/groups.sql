-- The links of a week by owner, host or file, each by its last look: (name, links, {outcome: links}, groups in all).
-- A link that stands in a file more than once counts there once.
WITH ended AS (
    SELECT page, outcome
    FROM last_looks
    WHERE run_id >= $since AND run_id < $until
),
named AS (
    SELECT
        ended.outcome,
        CASE $by
            WHEN 'host' THEN [host_of(pages.url)]
            WHEN 'owner' THEN [links.owner]
            ELSE list_distinct(list_transform(links.places, lambda place: place.file))
        END AS names
    FROM ended
    JOIN pages USING (page)
    LEFT JOIN links USING (link_id)
),
counted AS (
    SELECT name, count(*) AS links, count(*) FILTER (outcome = 'broken') AS broken, histogram(outcome) AS outcomes
    FROM (SELECT outcome, unnest(names) AS name FROM named)
    GROUP BY name
)
SELECT name, links, outcomes, count(*) OVER () AS total
FROM counted
ORDER BY broken DESC, links DESC, name NULLS LAST
LIMIT $most
