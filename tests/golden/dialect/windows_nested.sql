SELECT window, max(c) FROM w GROUP BY window
SELECT tumble(INTERVAL '1 minute') AS window, max(c) FROM w GROUP BY window
SELECT tumble(INTERVAL '10 minutes') AS window, max(c) FROM w GROUP BY window
SELECT max(c) FROM (SELECT c FROM w) GROUP BY tumble(INTERVAL '10 minutes')
SELECT window.start, window, max(c) FROM w GROUP BY tumble(INTERVAL '10 minutes')
