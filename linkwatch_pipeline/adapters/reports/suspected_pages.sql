-- Reachable links whose page may be another than was meant: (link_id, url, final_url, suspicions, hints, links with the
-- same bytes, observed in microseconds, links in all). Advice to a person: nothing here moves a state.
WITH answered AS (
    SELECT page, final_url, page_hints, content_hash, stayed, bytes_read, observed_at
    FROM last_looks
    WHERE outcome = 'reachable' AND run_id >= $since AND run_id < $until
),
-- Pages of one host that gave the very same bytes; an empty answer says nothing.
alike AS (
    SELECT host_of(url) AS host, content_hash, count(DISTINCT url) AS pages
    FROM answered
    JOIN pages USING (page)
    WHERE bytes_read > 0 AND content_hash IN (
        SELECT content_hash FROM answered WHERE content_hash IS NOT NULL GROUP BY content_hash HAVING count(*) >= $same_from
    )
    GROUP BY ALL
    HAVING count(DISTINCT url) >= $same_from
),
candidates AS (
    SELECT answered.*, link_id, url, coalesce(alike.pages, 1) AS others, site_of(host_of(url)) AS site
    FROM answered
    JOIN pages USING (page)
    LEFT JOIN alike ON alike.host = host_of(url) AND alike.content_hash = answered.content_hash AND bytes_read > 0
    WHERE NOT stayed OR len(page_hints) > 0 OR alike.pages IS NOT NULL
),
strayed AS (
    SELECT page
    FROM candidates
    WHERE final_url IS NOT NULL AND site_of(host_of(final_url)) <> site
),
-- Of those that end on another site now, the ones that were found at their own address before.
at_home_before AS (
    SELECT DISTINCT looks.page
    FROM looks
    SEMI JOIN strayed USING (page)
    WHERE looks.run_id < $since AND looks.outcome = 'reachable' AND looks.stayed
),
judged AS (
    SELECT
        *,
        list_filter(
            [
                CASE WHEN len(page_hints) > 0 THEN 'page_hint' END,
                CASE
                    WHEN len(list_filter($parking, lambda service: site_of(host_of(final_url)) = service)) > 0
                        THEN 'parking_host'
                END,
                CASE WHEN page IN (SELECT page FROM at_home_before) THEN 'other_site' END,
                CASE WHEN regexp_matches(path_of(final_url), $error_path, 'i') THEN 'error_page' END,
                CASE WHEN path_of(final_url) IN ('', '/') AND path_of(url) NOT IN ('', '/') THEN 'front_page' END,
                CASE WHEN others > 1 THEN 'same_page' END
            ],
            lambda suspicion: suspicion IS NOT NULL
        ) AS suspicions
    FROM candidates
)
SELECT
    link_id,
    url,
    CASE WHEN stayed THEN url ELSE final_url END AS final_url,
    suspicions,
    page_hints,
    others,
    epoch_us(observed_at) AS observed_at,
    count(*) OVER () AS total
FROM judged
WHERE len(suspicions) > 0
ORDER BY len(suspicions) DESC, link_id
LIMIT $most
