SELECT calendar_window(at, 'day') AS w, count(*) FROM t GROUP BY w
SELECT calendar_window(at, 'WEEK', 'Europe/Berlin').start, count(*) FROM t GROUP BY calendar_window(at, 'WEEK', 'Europe/Berlin')
SELECT calendar_window(at, 'quarter', '+02:00'), count(*) FROM t GROUP BY 1
