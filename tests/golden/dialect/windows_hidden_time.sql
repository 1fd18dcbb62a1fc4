SELECT count(*) FROM v GROUP BY tumble(INTERVAL '1 minute')
SELECT count(*) FROM (SELECT u FROM t UNION ALL SELECT u FROM v) AS q GROUP BY tumble(INTERVAL '1 minute')
WITH x AS (SELECT u FROM v AS y) SELECT u, count(*) FROM x GROUP BY 1, hop(INTERVAL '1 minute', INTERVAL '2 minutes')
SELECT row_time(), u FROM v
