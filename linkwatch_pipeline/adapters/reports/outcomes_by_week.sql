-- Links per week and outcome, each by its last look of the week: (run_week, outcome, links).
SELECT strftime(run_week, '%Y-%m-%d') AS run_week, outcome, sum(links)::BIGINT AS links
FROM weekly_outcomes
WHERE run_week < $until::DATE
GROUP BY ALL
ORDER BY ALL
