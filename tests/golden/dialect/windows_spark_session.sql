SELECT session_window.start, session_window.end, session_window FROM t GROUP BY session_window(at, '1 minute'), u
SELECT session_window(at, '5 seconds') AS w, u, count(*) FROM t GROUP BY w, u
SELECT session_window(at, '5 seconds').end AS e, count(*) FROM t GROUP BY session_window(at, '5 seconds'), u
SELECT count(*) AS n FROM t GROUP BY session_window(at, INTERVAL 5 SECONDS) HAVING session_window.end > now()
SELECT count(*) FROM t GROUP BY session_window(at, CASE WHEN u = 1 THEN '1 minute' ELSE '5 minutes' END)
SELECT w, sum(n) FROM (SELECT u, session_window(at, '1 hour') AS w, count(*) AS n FROM t GROUP BY u, w) GROUP BY w
