-- Links whose two latest looks, of the files at hand, were led by 301 and 308 alone to one and the same address:
-- (link_id, url, target, hops, earlier look in microseconds, links in all).
WITH moved_now AS (
    SELECT page, final_url, len(redirects) AS hops
    FROM last_looks
    WHERE
        run_id >= $since AND run_id < $until
        AND outcome = 'reachable'
        AND len(redirects) > 0
        AND final_url IS NOT NULL
        AND len(list_filter(redirects, lambda hop: hop.status NOT IN (301, 308))) = 0
),
before AS (
    SELECT looks.page, looks.final_url, looks.redirects, looks.observed_at, looks.outcome
    FROM looks
    SEMI JOIN moved_now USING (page)
    WHERE looks.run_id < $since
    QUALIFY row_number() OVER (PARTITION BY looks.page ORDER BY looks.sequence DESC) = 1
)
SELECT link_id, url, moved_now.final_url, hops, epoch_us(observed_at) AS since, count(*) OVER () AS total
FROM moved_now
JOIN before USING (page)
JOIN pages USING (page)
WHERE
    before.final_url = moved_now.final_url
    AND before.outcome = 'reachable'
    AND len(before.redirects) > 0
    AND len(list_filter(before.redirects, lambda hop: hop.status NOT IN (301, 308))) = 0
ORDER BY link_id
LIMIT $most
