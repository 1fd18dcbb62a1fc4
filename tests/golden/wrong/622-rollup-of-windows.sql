CREATE TABLE t (k STRING, x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'in', format = 'json', watch = true);
CREATE TABLE a WITH (connector = 'blackhole') AS
SELECT window.start AS s, k, count(*) AS n FROM t GROUP BY ROLLUP (tumble(INTERVAL '1 minute'), k);
