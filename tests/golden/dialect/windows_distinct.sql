SELECT count(DISTINCT u) AS n, array_agg(DISTINCT u) FILTER (WHERE n > 0) FROM t GROUP BY window(at, '1 minute')
SELECT count(DISTINCT u, n), max(DISTINCT n) FROM t GROUP BY tumble(INTERVAL '1 minute')
SELECT count(DISTINCT u) FROM t
