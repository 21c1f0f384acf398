-- Links whose last look of a week lacked the expected text: (link_id, url, observed in microseconds, status, final_url, all).
SELECT
    link_id,
    url,
    epoch_us(observed_at) AS observed_at,
    status,
    CASE WHEN stayed THEN url ELSE final_url END AS final_url,
    count(*) OVER () AS total
FROM last_looks
JOIN pages USING (page)
WHERE outcome = 'content_changed' AND run_id >= $since AND run_id < $until
ORDER BY link_id
LIMIT $most
