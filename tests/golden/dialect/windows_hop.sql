SELECT hop(INTERVAL '1 minute', INTERVAL '5 minutes') AS w, sum(n) FROM t GROUP BY w
SELECT sum(n) FROM t GROUP BY hop(INTERVAL '1 hour', INTERVAL '1 hour')
