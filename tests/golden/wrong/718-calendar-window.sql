CREATE TABLE t (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'in', format = 'json', watch = true);
CREATE TABLE a WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY calendar_window(ts, 'monht');
CREATE TABLE b WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY calendar_window(ts, 'day', 'Europe/Berlni');
CREATE TABLE c WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY calendar_window('day');
CREATE TABLE d WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY calendar_window(ts, k);
