-- Links uncertain at the end of a week, and of the weeks before it without a verdict in between:
-- (link_id, url, weeks, since in microseconds, reason, reasons, links in all).
-- A week without a look, or with a throttled one, neither counts nor ends the row. Another URL is another page.
WITH uncertain_now AS (
    SELECT link_id, url, reason
    FROM last_looks
    WHERE outcome = 'uncertain' AND run_id >= $since AND run_id < $until
),
history AS MATERIALIZED (
    SELECT looks.link_id, looks.run_week, looks.outcome, looks.reason, looks.observed_at
    FROM looks
    JOIN uncertain_now AS now ON now.link_id = looks.link_id AND now.url = looks.url
    WHERE looks.run_id < $until
),
certain AS (
    SELECT link_id, max(run_week) AS run_week
    FROM history
    WHERE outcome NOT IN ('uncertain', 'throttled')
    GROUP BY link_id
),
in_a_row AS (
    SELECT
        history.link_id,
        count(DISTINCT history.run_week) AS weeks,
        min(epoch_us(observed_at)) AS since,
        list_sort(list(DISTINCT reason)) AS reasons
    FROM history
    LEFT JOIN certain ON certain.link_id = history.link_id
    WHERE outcome = 'uncertain' AND (certain.run_week IS NULL OR history.run_week > certain.run_week)
    GROUP BY history.link_id
)
SELECT link_id, url, weeks, since, reason, reasons, count(*) OVER () AS total
FROM in_a_row
JOIN uncertain_now USING (link_id)
WHERE weeks >= $at_least
ORDER BY weeks DESC, link_id
LIMIT $most
