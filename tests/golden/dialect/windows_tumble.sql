SELECT tumble(INTERVAL '5 minutes') AS window, count(*) FROM t GROUP BY window
SELECT u, window.start, tumble(INTERVAL '1 hour') FROM t GROUP BY 1, 3
SELECT count(*) FROM t GROUP BY tumble(INTERVAL '90 seconds'), u HAVING count(*) > 1
SELECT window.start s, n FROM (SELECT tumble(INTERVAL '1 minute') window, count(*) n FROM t GROUP BY window)
SELECT count(*), tumble(INTERVAL '1 minute') window FROM (SELECT * EXCEPT (u) FROM t) GROUP BY 2
