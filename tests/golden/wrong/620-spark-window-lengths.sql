CREATE TABLE t (k STRING, x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'in', format = 'json', watch = true);
CREATE TABLE a WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY window(ts, '1 month');
CREATE TABLE b WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY window(ts, '0 seconds');
CREATE TABLE c WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY window(ts, '10 seconds', '1 minute');
CREATE TABLE d WITH (connector = 'blackhole') AS SELECT count(*) AS n FROM t GROUP BY k, session_window(ts, '-1 second');
