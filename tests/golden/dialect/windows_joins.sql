SELECT a.c, b.c FROM w AS a JOIN w AS b ON a.u = b.u WHERE a.c > 1
SELECT a.c FROM w AS a FULL JOIN w AS b ON a.window = b.window AND a.u = b.u
SELECT a.c, b.c FROM w AS a JOIN w AS b USING (u)
SELECT a.c, b.c FROM w AS a JOIN w AS b USING (u, window)
SELECT a.c FROM w AS a JOIN (SELECT * FROM w) b ON a.u = b.u JOIN (SELECT * FROM w) c ON b.u = c.u
SELECT a.c, b.c FROM w AS a, w AS b WHERE a.u = b.u AND a.window.start > TIMESTAMP '2026-01-01'
SELECT a.c, b.c FROM w AS a, w AS b WHERE a.u = b.u AND a.window.end = b.window.start
SELECT a.n FROM (SELECT window.start AS s, window.end AS e, count(*) AS n FROM t GROUP BY tumble(INTERVAL '1 minute')) a, (SELECT window.start AS s, count(*) AS n FROM t GROUP BY tumble(INTERVAL '1 minute')) b WHERE a.e = b.s AND a.n > 1
SELECT a.n FROM (SELECT window.start AS s, count(*) AS n FROM t GROUP BY tumble(INTERVAL '1 minute')) a, (SELECT window.start AS s, count(*) AS n FROM t GROUP BY tumble(INTERVAL '1 minute')) b WHERE a.s > TIMESTAMP '2026-01-01' AND a.n > 1
SELECT a.c, b.c FROM w AS a JOIN w AS b ON a.u = b.u AND a.window.start > TIMESTAMP '2026-01-01' AND b.window.start > TIMESTAMP '2026-01-01'
SELECT a.n FROM (SELECT u, window.start AS s, count(*) AS n FROM t GROUP BY u, tumble(INTERVAL '1 minute')) a JOIN (SELECT u, window.start AS s, count(*) AS n FROM t GROUP BY u, tumble(INTERVAL '1 minute')) b ON a.u = b.u AND a.s > TIMESTAMP '2026-01-01'
SELECT t.n FROM t JOIN (SELECT u, window.start AS s, window.end AS e, count(*) AS n FROM t GROUP BY u, tumble(INTERVAL '1 minute')) b ON t.u = b.u AND t.at BETWEEN b.s AND b.e
