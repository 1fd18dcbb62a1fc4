SELECT tumble(INTERVAL '10 seconds') AS window, count(*) FROM (SELECT u, n * 2 FROM t) AS x(u, m) GROUP BY window
SELECT tumble(INTERVAL '10 seconds') AS window, count(*) FROM (SELECT at, n * 2 FROM t) AS x(ts, m) GROUP BY window
SELECT tumble(INTERVAL '10 seconds') AS window, count(*) FROM v AS x(u, m) GROUP BY window
WITH x(u, m) AS (SELECT u, n * 2 FROM t) SELECT tumble(INTERVAL '10 seconds') AS window, count(*) FROM x GROUP BY window
SELECT x.c, y.c FROM (SELECT u, count(*) FROM t GROUP BY u, tumble(INTERVAL '1 minute')) x(u, c) JOIN w AS y ON x.u = y.u
SELECT x.c, y.c FROM (SELECT u, tumble(INTERVAL '1 minute'), count(*) FROM t GROUP BY 1, 2) x(u, i, c) JOIN w AS y ON x.u = y.u
SELECT window, sum(m) FROM (SELECT CAST(at AS TIMESTAMP) AS ts, n * 2 AS m FROM t) GROUP BY tumble(INTERVAL '10 seconds')
