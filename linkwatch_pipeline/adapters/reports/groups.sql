-- The links of a week by owner, host or file, each by its last look: (name, links, {outcome: links}, groups in all).
-- A link that stands in a file more than once counts there once.
WITH ended AS (
    SELECT page, outcome
    FROM last_looks
    WHERE run_id >= $since AND run_id < $until
),
named AS (
    SELECT outcome, host_of(url) AS name
    FROM ended
    JOIN pages USING (page)
    WHERE $by = 'host'
    UNION ALL
    SELECT outcome, owner AS name
    FROM ended
    JOIN pages USING (page)
    LEFT JOIN links USING (link_id)
    WHERE $by = 'owner'
    UNION ALL
    SELECT outcome, unnest(list_distinct(list_transform(places, lambda place: place.file))) AS name
    FROM ended
    JOIN pages USING (page)
    JOIN links USING (link_id)
    WHERE $by = 'file'
),
counted AS (
    SELECT name, count(*) AS links, count(*) FILTER (outcome = 'broken') AS broken, histogram(outcome) AS outcomes
    FROM named
    GROUP BY name
)
SELECT name, links, outcomes, count(*) OVER () AS total
FROM counted
ORDER BY broken DESC, links DESC, name NULLS LAST
LIMIT $most
