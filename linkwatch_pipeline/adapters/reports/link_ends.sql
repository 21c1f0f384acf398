-- Each link of a week by its last look: (link_id, url, outcome, reason, latency in milliseconds). A link that was given
-- another URL within the week has one page for each; its latest look counts.
SELECT link_id, url, outcome, reason, latency_ms
FROM last_looks
JOIN pages USING (page)
WHERE run_id >= $since AND run_id < $until
QUALIFY row_number() OVER (PARTITION BY link_id ORDER BY sequence DESC) = 1
ORDER BY link_id
