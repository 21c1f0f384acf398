-- Links per week and outcome, each by its last look of the week: (run_week, outcome, links).
-- Counting all looks and taking away the superseded ones reads two narrow columns of most rows; finding the last look of
-- every link would read all ids. Only `throttled` looks are ever looked at again (use_cases.dispatch.needs_retry).
WITH counted AS (
    SELECT run_id, outcome, count(*) AS links
    FROM looks
    WHERE run_id < $until
    GROUP BY ALL
),
superseded AS (
    SELECT run_id, outcome, -count(*) AS links
    FROM looks
    SEMI JOIN later_looks AS later
        ON later.link_id = looks.link_id AND later.run_week = looks.run_week AND later.sequence > looks.sequence
    WHERE outcome = 'throttled' AND run_id < $until
    GROUP BY ALL
)
SELECT left(run_id, 10) AS run_week, outcome, sum(links)::BIGINT AS links
FROM (FROM counted UNION ALL FROM superseded)
GROUP BY ALL
HAVING sum(links) > 0
ORDER BY ALL
