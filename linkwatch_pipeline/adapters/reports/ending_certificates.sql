-- Hosts whose certificate ends soon after the look: (host, end in microseconds, days left, links, an example, hosts in all).
-- The certificate is that of the last address of the redirects.
WITH ending AS (
    SELECT
        host_of(CASE WHEN stayed THEN url ELSE final_url END) AS host,
        tls_not_after,
        date_diff('second', observed_at, tls_not_after) AS seconds_left,
        url
    FROM last_looks
    JOIN pages USING (page)
    WHERE
        run_id >= $since AND run_id < $until
        AND tls_not_after < observed_at + to_days($days)
        AND (stayed OR final_url IS NOT NULL)
)
SELECT
    host,
    epoch_us(min(tls_not_after)) AS not_after,
    floor(min(seconds_left) / 86400)::INTEGER AS days_left,
    count(*) AS links,
    min(url) AS example,
    count(*) OVER () AS total
FROM ending
GROUP BY host
ORDER BY not_after, host
LIMIT $most
