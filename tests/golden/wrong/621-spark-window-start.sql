CREATE TABLE t (k STRING, x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'in', format = 'json', watch = true);
CREATE TABLE a WITH (connector = 'blackhole') AS
SELECT window.start AS s, count(*) AS n FROM t GROUP BY window(ts, '10 seconds', '10 seconds', '13 seconds');
