SELECT u, session(INTERVAL '30 seconds') AS window FROM t GROUP BY window, u
SELECT window.start, window.end AS e, window FROM t GROUP BY session(INTERVAL '1 minute')
