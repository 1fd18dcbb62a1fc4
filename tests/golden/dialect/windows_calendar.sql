SELECT calendar_window(at, 'day') AS w, count(*) FROM t GROUP BY w
SELECT calendar_window(at, 'WEEK', 'Europe/Berlin').start, count(*) FROM t GROUP BY calendar_window(at, 'WEEK', 'Europe/Berlin')
SELECT calendar_window(at, 'quarter', '+02:00'), count(*) FROM t GROUP BY 1
SELECT l.g FROM (SELECT g, calendar_window(at, 'day') AS w FROM t GROUP BY g, w) l
  JOIN (SELECT g, calendar_window(at, 'day') AS w FROM t GROUP BY g, w) r ON l.g = r.g
SELECT l.g FROM (SELECT g, calendar_window(at, 'day', '+02:00') AS w FROM t GROUP BY g, 2) l
  JOIN (SELECT g, calendar_window(at, 'day') AS w FROM t GROUP BY g, w) r ON l.g = r.g
