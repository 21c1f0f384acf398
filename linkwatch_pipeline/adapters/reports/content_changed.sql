-- Links whose last look of a week lacked the expected text: (link_id, url, observed in microseconds, status, final_url, all).
SELECT link_id, url, epoch_us(observed_at) AS observed_at, status, final_url, count(*) OVER () AS total
FROM last_looks
WHERE outcome = 'content_changed' AND run_id >= $since AND run_id < $until
ORDER BY link_id
LIMIT $most
