-- Hosts by the median time of their answers: (host, answers, median, 95th percentile, slowest, all in ms, hosts in all).
SELECT
    host_of(url) AS host,
    count(*) AS answers,
    quantile_disc(latency_ms, 0.5) AS median_ms,
    quantile_disc(latency_ms, 0.95) AS p95_ms,
    max(latency_ms) AS slowest_ms,
    count(*) OVER () AS total
FROM last_looks
JOIN pages USING (page)
WHERE status IS NOT NULL AND run_id >= $since AND run_id < $until
GROUP BY host
ORDER BY median_ms DESC, host
LIMIT $most
