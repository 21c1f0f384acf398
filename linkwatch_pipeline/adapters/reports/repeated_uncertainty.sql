-- Links uncertain at the end of a week, and of the weeks before it without a verdict in between:
-- (link_id, url, weeks, since in microseconds, reason, reasons, links in all).
-- A week without a look, or with a throttled one, neither counts nor ends the row. Another URL is another page.
WITH uncertain_now AS (
    SELECT page, reason
    FROM last_looks
    WHERE outcome = 'uncertain' AND run_id >= $since AND run_id < $until
),
history AS MATERIALIZED (
    SELECT looks.page, looks.run_week, looks.outcome, looks.reason, looks.observed_at
    FROM looks
    SEMI JOIN uncertain_now USING (page)
    WHERE looks.run_id < $until
),
certain AS (
    SELECT page, max(run_week) AS run_week
    FROM history
    WHERE outcome NOT IN ('uncertain', 'throttled')
    GROUP BY page
),
in_a_row AS (
    SELECT
        history.page,
        count(DISTINCT history.run_week) AS weeks,
        min(epoch_us(observed_at)) AS since,
        list_sort(list(DISTINCT reason)) AS reasons
    FROM history
    LEFT JOIN certain USING (page)
    WHERE outcome = 'uncertain' AND (certain.run_week IS NULL OR history.run_week > certain.run_week)
    GROUP BY history.page
)
SELECT link_id, url, weeks, since, reason, reasons, count(*) OVER () AS total
FROM in_a_row
JOIN uncertain_now USING (page)
JOIN pages USING (page)
WHERE weeks >= $at_least
ORDER BY weeks DESC, link_id
LIMIT $most
